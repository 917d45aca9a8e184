package nodeconfig_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// watching returns a node whose script watches its files permanently.
func watching(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.env = append(n.env, "WATCH_INTERVAL=0.05")
	return n
}

// await waits until the hosts.toml of r has the expected content.
func (n *node) await(t *testing.T, r nodeconfig.Registry) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		content, _ := os.ReadFile(n.path(r.Upstream))
		if string(content) == nodeconfig.HostsTOML(r) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %s hosts.toml is:\n%s", patience, content)
		}
	}
}

func TestScriptRestoresItsFiles(t *testing.T) {
	ca := newTestCA(t, "cache")
	for name, damage := range map[string]func(n *node, file, content string) error{
		"lost":                    func(_ *node, file, _ string) error { return os.Remove(file) },
		"directory lost":          func(n *node, file, _ string) error { return n.lose(filepath.Dir(file)) },
		"all directories lost":    func(n *node, _, _ string) error { return n.lose(n.certs) },
		"empty":                   func(_ *node, file, _ string) error { return os.Truncate(file, 0) },
		"cut off":                 func(_ *node, file, content string) error { return os.Truncate(file, int64(len(content)/2)) },
		"one byte short":          func(_ *node, file, content string) error { return os.Truncate(file, int64(len(content)-1)) },
		"longer":                  func(_ *node, file, content string) error { return os.WriteFile(file, []byte(content+"\n"), 0o644) },
		"the certificate":         replacing("\nMI", "\nXX"),
		"the name of the CA file": replacing("  ca = \"hosts", "  ca = \"horst"),
		"the mirror":              replacing("[host.", "[hosx."),
		"garbage":                 func(_ *node, file, _ string) error { return os.WriteFile(file, []byte("garbage\n"), 0o644) },
		"zeros": func(_ *node, file, content string) error {
			return os.WriteFile(file, make([]byte, len(content)), 0o644)
		},
		"replaced by a broken file": func(_ *node, file, _ string) error {
			return os.WriteFile(file, []byte(nodeconfig.Marker+"\n= ["), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := watching(t)
			c, other := newTLSCache(t, "alpha.test", ca, ca.PEM, ready), newCache(t, "beta.test", ready)
			p := n.start(t, c.Argument(), other.Argument())
			p.expect("alpha.test: pulls go through")
			n.await(t, other.Registry)
			for range 2 {
				if err := damage(n, n.path("alpha.test"), nodeconfig.HostsTOML(c.Registry)); err != nil {
					t.Fatal(err)
				}
				p.expect("alpha.test: " + n.path("alpha.test") + " is lost or changed, restoring it")
				p.expect("alpha.test: pulls go through")
				n.expectHosts(t, c.Registry)
			}
			n.await(t, other.Registry)
			n.expectEntries(t, "alpha.test", "beta.test")
		})
	}
}

// lose removes a folder atomically: the script could write into a folder while it is emptied.
func (n *node) lose(folder string) error {
	lost, err := os.MkdirTemp(n.tools, "lost")
	if err != nil {
		return err
	}
	return os.Rename(folder, filepath.Join(lost, "folder"))
}

func replacing(old, by string) func(n *node, file, content string) error {
	return func(_ *node, file, content string) error {
		return os.WriteFile(file, []byte(strings.Replace(content, old, by, 1)), 0o644)
	}
}

// The mirror of a removed cache must not be restored, and a damaged file must not stay.
func TestScriptRestoresNoMirrorWhoseCacheIsGone(t *testing.T) {
	n := watching(t)
	var gone atomic.Bool
	c := newCache(t, "alpha.test", func(w http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	p := n.start(t, c.Argument())
	p.expect("pulls go through")
	gone.Store(true)
	n.write(t, "alpha.test", strings.Replace(nodeconfig.HostsTOML(c.Registry), "https://alpha.test", "https://alphb.test", 1))
	p.expect("waiting for " + c.Endpoint + ": HTTP status 503")
	n.expectEntries(t)
	gone.Store(false)
	n.await(t, c.Registry)
}

func TestScriptLeavesAFileAloneThatSomebodyElseTookOver(t *testing.T) {
	for name, content := range map[string]string{
		"unmanaged mirror":        unmanaged,
		"a table":                 "# mine\n[host.\"http://10.0.0.9\"]\n",
		"own file without Marker": strings.TrimPrefix(nodeconfig.HostsTOML(dockerHub), nodeconfig.Marker),
	} {
		t.Run(name, func(t *testing.T) {
			n := watching(t)
			alpha, beta := newCache(t, "alpha.test", ready), newCache(t, "beta.test", ready)
			p := n.start(t, alpha.Argument(), beta.Argument())
			n.await(t, alpha.Registry)
			n.await(t, beta.Registry)
			n.write(t, "alpha.test", content)
			p.expect("alpha.test: " + n.path("alpha.test") + " is not ours, leaving it alone")
			if err := os.Remove(n.path("beta.test")); err != nil { // the script still watches the other files
				t.Fatal(err)
			}
			n.await(t, beta.Registry)
			if got, err := os.ReadFile(n.path("alpha.test")); string(got) != content {
				t.Errorf("the file is overwritten with:\n%s%v", got, err)
			}
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if log := p.wait(); strings.Count(log, "is not ours") != 1 {
				t.Errorf("the log does not report the file exactly once:\n%s", log)
			}
		})
	}
}

// The cleaner stops the unit before it removes files, and systemd gives the script 10 s to end.
func TestScriptEndsAtOnceWhileItWatches(t *testing.T) {
	n := watching(t)
	n.env = append(n.env, "WATCH_INTERVAL=1000")
	c := newCache(t, "alpha.test", ready)
	p := n.start(t, c.Argument())
	n.await(t, c.Registry)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait()
	n.expectHosts(t, c.Registry)
}

func TestScriptEndsWithoutAnythingToWatch(t *testing.T) {
	n := watching(t)
	n.run(t)
	n.env = append(n.env, "GIVE_UP_AFTER=0")
	c := newCache(t, "alpha.test", answer(http.StatusServiceUnavailable))
	n.write(t, "beta.test", unmanaged)
	n.run(t, c.Registry, nodeconfig.Registry{Upstream: "beta.test", Endpoint: c.Endpoint, UpstreamURL: "https://beta.test"})
	n.expectEntries(t, "beta.test")
}

// While nothing changes, the script only sleeps: it starts no command to check the files.
func TestScriptWatchesWithoutStartingAnything(t *testing.T) {
	n := watching(t)
	c := newCache(t, "alpha.test", ready)
	started := filepath.Join(n.tools, "started")
	for _, tool := range []string{"cat", "chmod", "curl", "fold", "grep", "mkdir", "mktemp", "mv", "rm", "rmdir", "sync"} {
		n.tool(t, tool, `echo `+tool+` >>"${0%/*}/started"; exec "$real" "$@"`)
	}
	n.tool(t, "sleep", `echo "sleeps" >&2; exec "$real" "$@"`)
	p := n.start(t, c.Argument())
	p.expect("pulls go through")
	before, err := os.ReadFile(started)
	if err != nil || !strings.Contains(string(before), "curl") {
		t.Fatalf("the fake commands report %q, %v", before, err)
	}
	for range 5 {
		p.expect("sleeps")
	}
	if after, err := os.ReadFile(started); string(after) != string(before) {
		t.Errorf("the script starts programs: %q, %v", strings.TrimPrefix(string(after), string(before)), err)
	}
}
