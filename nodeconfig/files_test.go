package nodeconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const unmanaged = "server = \"https://mirror.example.com\"\n"

func TestLoopRestoresItsFile(t *testing.T) {
	t.Parallel()
	ca := newTestCA(t, "cache")
	for name, damage := range map[string]func(n *node, file, content string) error{
		"lost":                    func(_ *node, file, _ string) error { return os.Remove(file) },
		"directory lost":          func(n *node, file, _ string) error { return n.lose(filepath.Dir(file)) },
		"all directories lost":    func(n *node, _, _ string) error { return n.lose(n.certs) },
		"empty":                   func(_ *node, file, _ string) error { return os.Truncate(file, 0) },
		"cut off":                 func(_ *node, file, content string) error { return os.Truncate(file, int64(len(content)/2)) },
		"one byte short":          func(_ *node, file, content string) error { return os.Truncate(file, int64(len(content)-1)) },
		"longer":                  writing(func(content string) string { return content + "\n" }),
		"the certificate":         writing(func(content string) string { return strings.Replace(content, "\nMI", "\nXX", 1) }),
		"the name of the CA file": writing(func(content string) string { return strings.Replace(content, "  ca = \"hosts", "  ca = \"horst", 1) }),
		"the mirror":              writing(func(content string) string { return strings.Replace(content, "[host.", "[hosx.", 1) }),
		"garbage":                 writing(func(string) string { return "garbage\n" }),
		"zeros":                   writing(func(content string) string { return strings.Repeat("\x00", len(content)) }),
		"zeros after it":          writing(func(content string) string { return content + "\x00\x00" }),
		"broken":                  writing(func(string) string { return nodeconfig.Marker + "\n= [" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			c, other := newCache(t, "alpha.test", ca, ready), newCache(t, "beta.test", nil, ready)
			p := n.startFor(t, c.Registry, other.Registry)
			p.rounds(1)
			for range 2 {
				must(t, damage(n, n.path("alpha.test"), hostsTOML(c.Registry)))
				p.expect("alpha.test: " + n.path("alpha.test") + " was lost or changed, restored it")
				n.expectKind(t, c.Registry, "mirror")
			}
			p.until("the other file is right", func() bool { return n.kind(other.Registry) == "mirror" })
			p.stop()
			n.expectEntries(t, "alpha.test", "beta.test")
		})
	}
}

// lose removes a folder atomically: the script could write into a folder that is being emptied.
func (n *node) lose(folder string) error {
	lost, err := os.MkdirTemp(n.tools, "lost")
	if err != nil {
		return err
	}
	return os.Rename(folder, filepath.Join(lost, "folder"))
}

func writing(change func(content string) string) func(n *node, file, content string) error {
	return func(_ *node, file, content string) error { return os.WriteFile(file, []byte(change(content)), 0o644) }
}

// The script leaves a foreign file alone, at the start, later and at the end. It writes ours when
// that file is gone.
func TestLoopLeavesForeignFilesAlone(t *testing.T) {
	t.Parallel()
	file := func(content string) func(t *testing.T, n *node) {
		return func(t *testing.T, n *node) { n.write(t, "alpha.test", content) }
	}
	link := func(content string) func(t *testing.T, n *node) {
		return func(t *testing.T, n *node) {
			target := filepath.Join(n.tools, "linked")
			must(t, os.WriteFile(target, []byte(content), 0o644), os.MkdirAll(filepath.Dir(n.path("alpha.test")), 0o755),
				os.Symlink(target, n.path("alpha.test")))
		}
	}
	for name, test := range map[string]struct {
		create func(t *testing.T, n *node)
		always bool // even if it replaces our file
	}{
		"another hosts.toml":    {file(unmanaged), true},
		"a table":               {file("# mine\n[host.\"http://10.0.0.9\"]\n"), true},
		"mark in another line":  {file(unmanaged + nodeconfig.Marker + "\n"), true},
		"our text without mark": {file(strings.TrimPrefix(hostsTOML(dockerHub), nodeconfig.Marker)), true},
		"mark in a longer line": {file(nodeconfig.Marker + "s\n"), false},
		"an empty one":          {file(""), false},
		"a link to nowhere": {func(t *testing.T, n *node) {
			must(t, os.MkdirAll(filepath.Dir(n.path("alpha.test")), 0o755), os.Symlink("/nowhere", n.path("alpha.test")))
		}, true},
		"a link to a file with the mark": {link(hostsTOML(dockerHub)), true},
		"a link to an empty file":        {link(""), true},
		"a named pipe": {func(t *testing.T, n *node) {
			must(t, os.MkdirAll(filepath.Dir(n.path("alpha.test")), 0o755), syscall.Mkfifo(n.path("alpha.test"), 0o644))
		}, true},
		"a directory": {func(t *testing.T, n *node) { must(t, os.MkdirAll(n.path("alpha.test"), 0o755)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			c, upstreamCA := newCache(t, "alpha.test", nil, ready), newTestCA(t, "upstream").PEM
			c.UpstreamCA = upstreamCA
			test.create(t, n)
			p := n.startFor(t, c.Registry)
			for {
				before, err := os.Lstat(n.path("alpha.test"))
				must(t, err)
				p.state("alpha.test", "foreign", n.path("alpha.test")+" is not ours")
				c.become(answer(503)) // the file is kept, whatever the cache answers
				p.expect("alpha.test: direct: ")
				c.become(ready)
				p.expect("alpha.test: mirror: ")
				p.rounds(1)
				after, err := os.Lstat(n.path("alpha.test"))
				if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
					t.Errorf("the foreign file is changed: %v, %v", after, err)
				}
				must(t, os.RemoveAll(filepath.Dir(n.path("alpha.test"))))
				p.state("alpha.test", "mirror", "answers")
				n.expectKind(t, c.Registry, "mirror")
				if !test.always {
					break
				}
				test.always = false
				must(t, n.lose(filepath.Dir(n.path("alpha.test"))))
				test.create(t, n)
			}
			if log := p.stop(); strings.Count(log, "is not ours") > 2 {
				t.Errorf("the log says it more than once each time:\n%s", log)
			}
		})
	}
}

func TestLoopRemovesStaleFiles(t *testing.T) {
	n := newNode(t)
	stale := []string{"beta.test", "with-more.test", "alpha.test:5000", "[::1]", "alpha"}
	for _, upstream := range stale {
		n.write(t, upstream, hostsTOML(nodeconfig.Registry{Upstream: upstream}))
	}
	n.write(t, "unmanaged.test", unmanaged)
	must(t, os.WriteFile(filepath.Join(n.certs, "with-more.test", "ca.crt"), nil, 0o644))
	p := n.startFor(t, newCache(t, "alpha.test", nil, ready).Registry)
	p.rounds(1)
	n.expectEntries(t, "alpha.test", "unmanaged.test", "with-more.test")
	n.write(t, "later.test", hostsTOML(nodeconfig.Registry{Upstream: "later.test"}))
	p.rounds(1)
	log := p.stop()
	n.expectEntries(t, "alpha.test", "unmanaged.test", "with-more.test")
	for _, upstream := range append(stale, "later.test") {
		if want := upstream + ": it has no cache any more, removed " + n.path(upstream); strings.Count(log, want) != 1 {
			t.Errorf("the log does not say %q once:\n%s", want, log)
		}
	}
	p = n.start(t) // without arguments
	p.rounds(1)
	p.stop()
	n.expectEntries(t, "unmanaged.test", "with-more.test")
}

// On a full or read-only disk the loop retries forever, and logs the reason once.
func TestLoopWritesOnceItCan(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mktemp", "chmod", "sync", "mv", "certs.d is a file"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			n, reason, fix := newNode(t), "No space left on device", func(n *node) { n.repair(t, tool) }
			if strings.Contains(tool, " ") {
				must(t, os.MkdirAll(filepath.Dir(n.certs), 0o755), os.WriteFile(n.certs, nil, 0o600))
				reason, fix = "File exists", func(n *node) { must(t, os.Remove(n.certs)) }
			} else {
				n.tool(t, tool, `[[ $* == */run/* ]] && exec "$real" "$@"; echo "No space left on device" >&2; exit 1`)
			}
			c := newCache(t, "alpha.test", nil, ready)
			damaged := strings.Replace(hostsTOML(c.Registry), "server", "sarver", 1)
			if tool == "mv" {
				n.write(t, "alpha.test", damaged)
			}
			p := n.startFor(t, c.Registry)
			p.state("alpha.test", "stuck", "cannot write "+n.path("alpha.test")+": ")
			p.rounds(2)
			n.expectKind(t, c.Registry, "none") // a damaged file is removed
			fix(n)
			p.state("alpha.test", "mirror", "")
			n.expectKind(t, c.Registry, "mirror")
			log := p.stop()
			n.expectEntries(t, "alpha.test")
			if strings.Count(log, "cannot write "+n.path("alpha.test")) != 1 || !strings.Contains(log, reason) {
				t.Errorf("the log does not say %q once:\n%s", reason, log)
			}
		})
	}
}

// On a full disk, the file with the mirror is kept if direct pulls need it: without a file,
// containerd guesses the URL and the CAs of the upstream, and pulls fail.
func TestLoopKeepsWhatDirectPullsNeed(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{"https://alpha.test": "none", "http://alpha.test": "mirror"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			n, c := newNode(t), newCache(t, "alpha.test", nil, ready)
			c.UpstreamURL = url
			p := n.startFor(t, c.Registry)
			p.state("alpha.test", "mirror", "")
			n.tool(t, "mktemp", `echo "No space left on device" >&2; exit 1`)
			c.become(answer(503))
			p.until("the loop notices", func() bool { return c.requests.Load() > 0 && n.kind(c.Registry) == want })
			p.rounds(4)
			n.expectKind(t, c.Registry, want)
		})
	}
}

func TestDockerHubNeedsNoFileForDirectPulls(t *testing.T) {
	n, c := newNode(t), newCache(t, "docker.io", nil, answer(503))
	c.UpstreamURL = "https://registry-1.docker.io"
	n.startFor(t, c.Registry).state("docker.io", "direct", "answers 503")
	n.expectEntries(t)
}

func TestLoopRemovesOnceItCan(t *testing.T) {
	n := newNode(t)
	n.tool(t, "rm", `[[ $* == *hosts.toml ]] && { echo "Read-only file system" >&2; exit 1; }; exec "$real" "$@"`)
	c := newCache(t, "alpha.test", nil, answer(503))
	n.write(t, "alpha.test", strings.Replace(hostsTOML(c.Registry), "alpha", "beta", 1))
	n.write(t, "stale.test", hostsTOML(c.Registry))
	p := n.startFor(t, c.Registry)
	p.state("alpha.test", "stuck", "Read-only file system")
	p.rounds(2)
	n.repair(t, "rm")
	p.state("alpha.test", "direct", "answers 503")
	p.rounds(1)
	n.expectEntries(t)
	if log := p.stop(); strings.Count(log, "Read-only") != 2 {
		t.Errorf("the log does not say it once for each file:\n%s", log)
	}
}

// TestScriptKilledAtAnyPointLeavesNoHalfFile kills the script at each command that writes the file.
// The file must be complete or absent. The next run completes it and removes leftovers.
func TestScriptKilledAtAnyPointLeavesNoHalfFile(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mktemp", "chmod", "sync", "mkdir", "mv"} {
		for when, body := range map[string]string{"before": "kill -KILL 0", "after": `"$real" "$@"; kill -KILL 0`} {
			t.Run(when+" "+tool, func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.tool(t, tool, `[[ $* == *alpha.test* || $* == *.configure* ]] || exec "$real" "$@"`+"\n"+body)
				c := newCache(t, "alpha.test", nil, ready)
				if err := n.startFor(t, c.Registry).ended(); err == nil {
					t.Error("the script is not killed")
				}
				if want := (tool == "mv" && when == "after"); want != (n.kind(c.Registry) == "mirror") || !want && n.kind(c.Registry) != "none" {
					t.Errorf("hosts.toml is %s", n.kind(c.Registry))
				}
				n.repair(t, tool)
				p := n.startFor(t, c.Registry)
				p.rounds(1)
				n.expectKind(t, c.Registry, "mirror")
				n.expectEntries(t, "alpha.test")
			})
		}
	}
}
