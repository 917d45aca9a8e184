package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The fake commands keep their state in files in the script's working directory: "images" lists the
// names and digests of containerd's images, and "calls" lists the commands that ran. ctr and crictl
// fail for arguments that the script should not use.
const (
	fakeSystemctl = `echo "systemctl $*" >>calls`

	// fakeCtr prints a list like ctr's: aligned columns, and sizes that contain a space.
	fakeCtr = `
echo "ctr $*" >>calls
case "$1 $2 $3" in
"--namespace=k8s.io images list")
  echo "REF TYPE DIGEST SIZE PLATFORMS LABELS"
  while read -r name digest; do
    printf '%-40s application/vnd.oci.image.index.v1+json   %s   1.2 MiB   linux/amd64 io.cri-containerd.image=managed \n' \
      "$name" "$digest"
  done <images ;;
"--namespace=k8s.io images remove")
  [[ $4 == --sync ]]
  for name in "${@:5}"; do
    grep -qF -- "$name " images # an unknown name is an error
    awk -v name="$name" '$1 != name' images >rest
    mv rest images
    echo "$name"
  done ;;
*) exit 2 ;;
esac`

	// crictl lists repository and tag in separate columns. The fake lists containerd's images without
	// a delay.
	fakeCrictl = `
echo "crictl $*" >>calls
[[ "$*" == "--timeout=30s images" ]]
echo "IMAGE   TAG   IMAGE ID   SIZE"
while read -r name digest; do
  [[ $name == *sha256:* ]] || echo "${name%:*}   ${name##*:}   ${digest:7:13}   1.2MB"
done <images`

	listedAlpha = "echo 'alpha.upstream.test/e2e/x   latest   aaaa   1.2MB'"
)

// otherImages must survive: none is from a .test host or shares a digest with an image from one.
var otherImages = []string{
	"registry-cache.testbed/busybox:stable sha256:b1",
	"registry.k8s.io/pause:3.10 sha256:b2",
	"registry.k8s.io/pause@sha256:b2 sha256:b2",
	"import-2026-11-21@sha256:b3 sha256:b3",
	"192.0.2.7/e2e/x:latest sha256:b4",
	"upstream.test.example/e2e/x:latest sha256:b5",
	"registry.latest/e2e/x.test/y:latest sha256:b6",
	"sha256:c1 sha256:b1",
}

// startedNode runs the real script with the real bash in a folder, with fakes of the node's
// commands.
type startedNode struct {
	state   string
	tools   string
	paths   []string // the script's argument $2
	dirs    [2]string
	seconds string // the script's argument $5
}

func newStartedNode(t *testing.T, images []string) *startedNode {
	t.Helper()
	n := &startedNode{state: t.TempDir(), tools: t.TempDir(), dirs: [2]string{t.TempDir(), t.TempDir()}, seconds: "60"}
	n.write(t, "images", strings.Join(images, "\n")+"\n")
	n.write(t, "calls", "")
	for name, body := range map[string]string{"systemctl": fakeSystemctl, "ctr": fakeCtr, "crictl": fakeCrictl} {
		n.fake(t, name, body)
	}
	return n
}

func (n *startedNode) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.state, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fake puts a command first on the PATH.
func (n *startedNode) fake(t *testing.T, name, body string) {
	t.Helper()
	content := "#!/bin/bash\nset -euo pipefail\n" + body + "\n"
	if err := os.WriteFile(filepath.Join(n.tools, name), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// readLines returns the lines of a state file.
func (n *startedNode) readLines(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(n.state, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// countCalls returns how many calls start with the given text.
func (n *startedNode) countCalls(t *testing.T, command string) int {
	t.Helper()
	count := 0
	for _, call := range n.readLines(t, "calls") {
		if strings.HasPrefix(call, command) {
			count++
		}
	}
	return count
}

// start runs the script as Node.Script does and returns its output and exit code.
func (n *startedNode) start(t *testing.T, units ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // only a script that hangs reaches the timeout
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", resetMachine, "bash",
		strings.Join(units, " "), lines(n.paths), n.dirs[0], n.dirs[1], n.seconds)
	// SECONDS starts at 100, to check that time before the wait does not count as waiting.
	cmd.Dir, cmd.Env = n.state, append(os.Environ(), "PATH="+n.tools+":"+os.Getenv("PATH"), "SECONDS=100")
	cmd.WaitDelay = time.Minute // a child that outlives the script keeps its output open
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v, %v\n%s", err, ctx.Err(), output)
	}
	return string(output), cmd.ProcessState.ExitCode()
}

// expectStart checks that the script succeeds.
func (n *startedNode) expectStart(t *testing.T, units ...string) {
	t.Helper()
	if output, code := n.start(t, units...); code != 0 {
		t.Fatalf("exit code %d\n%s\nafter these calls:\n%s", code, output, strings.Join(n.readLines(t, "calls"), "\n"))
	}
}

// expectFailure checks that the script fails and gives the reason in its last line, since errors
// keep only the end of a long output.
func (n *startedNode) expectFailure(t *testing.T, code int, why ...string) {
	t.Helper()
	output, got := n.start(t)
	last := strings.TrimSuffix(output, "\n")
	last = last[strings.LastIndex(last, "\n")+1:]
	if got != code || slices.ContainsFunc(why, func(part string) bool { return !strings.Contains(last, part) }) {
		t.Errorf("exit code %d, want %d and %q in the last line of\n%s", got, code, why, output)
	}
}

func TestStartMachineRemovesImages(t *testing.T) {
	for name, removed := range map[string][]string{
		"nothing to remove": nil,
		"a tag":             {"alpha.upstream.test/e2e/x:latest sha256:a1"},
		"a digest":          {"alpha.upstream.test/e2e/x@sha256:a1 sha256:a1"},
		"a host with port":  {"alpha.upstream.test:5000/e2e/x:latest sha256:a1"},
		"the same digest": {
			"192.0.2.7/e2e/same:latest sha256:a1", "alpha.upstream.test/e2e/x:latest sha256:a1",
			"alpha.upstream.test/e2e/x@sha256:a1 sha256:a1", "sha256:c2 sha256:a1",
		},
		"several images": {
			"alpha.upstream.test/e2e/x:latest sha256:a1", "beta.upstream.test/e2e/y:latest sha256:a2", "sha256:c2 sha256:a1", "sha256:c3 sha256:a2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newStartedNode(t, append(slices.Clone(removed), otherImages...))
			n.expectStart(t)
			if got := n.readLines(t, "images"); !slices.Equal(got, otherImages) {
				t.Errorf("left are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(otherImages, "\n"))
			}
			want := min(len(removed), 1)
			if got := n.countCalls(t, "ctr --namespace=k8s.io images remove"); got != want {
				t.Errorf("images were removed in %d calls, want %d", got, want)
			}
		})
	}
}

// TestStartMachineWaitsForTheRuntime: only a list without images from .test hosts ends the wait.
func TestStartMachineWaitsForTheRuntime(t *testing.T) {
	for name, first := range map[string]string{
		"it fails at first":            "exit 1",
		"it fails with half a list":    "echo 'registry.k8s.io/pause   3.10   b2   1MB'; exit 1",
		"it lists an image at first":   listedAlpha + "; exit 0",
		"it lists one with a port":     "echo 'alpha.upstream.test:5000/e2e/x   latest   aaaa   1.2MB'; exit 0",
		"it lists one and fails after": listedAlpha + "; exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			n := newStartedNode(t, otherImages)
			n.fake(t, "crictl", `if ! [[ -e asked ]]; then touch asked; echo "crictl $*" >>calls; `+first+"; fi\n"+fakeCrictl)
			n.expectStart(t)
			if got := n.countCalls(t, "crictl --timeout=30s images"); got != 2 {
				t.Errorf("crictl was asked %d times, want 2", got)
			}
		})
	}
}

func TestStartMachineFails(t *testing.T) {
	const (
		alpha   = "alpha.upstream.test/e2e/x:latest"
		failing = "{ echo no answer >&2; exit 3; }"
	)
	for name, test := range map[string]struct {
		tool, body string
		code       int
		why        []string
	}{
		"the runtime keeps images": {
			"crictl", listedAlpha + "; echo beta.upstream.test/y   one", 1,
			[]string{"the CRI still lists images after 1 seconds: " + alpha + " beta.upstream.test/y:one"},
		},
		"the runtime does not answer": {"crictl", failing, 1, []string{"the CRI still lists images after 1 seconds: unknown, crictl fails"}},
		"images stay":                 {"ctr", "[[ $3 != remove ]] || exit 0" + fakeCtr, 1, []string{"images were not removed: ", alpha, "sha256:c2"}},
		"containerd does not list":    {"ctr", "[[ $3 != list ]] || " + failing + fakeCtr, 3, []string{"no answer"}},
		"containerd does not remove":  {"ctr", "[[ $3 != remove ]] || " + failing + fakeCtr, 123, []string{"no answer"}},
		"containerd lists only once": {
			"ctr", "if [[ $3 == list ]]; then mkdir once || " + failing + "; fi" + fakeCtr, 3, []string{"no answer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newStartedNode(t, append([]string{alpha + " sha256:a1", "sha256:c2 sha256:a1"}, otherImages...))
			n.seconds = "1"
			n.fake(t, test.tool, test.body)
			n.expectFailure(t, test.code, test.why...)
		})
	}
}

// TestStartMachineRemovesFiles: the script removes n.paths, but only empties n.dirs.
func TestStartMachineRemovesFiles(t *testing.T) {
	n := newStartedNode(t, otherImages)
	units := t.TempDir()
	n.paths = []string{filepath.Join(units, "a b.service"), filepath.Join(units, "c.service.d"), filepath.Join(units, "missing")}
	for _, file := range []string{
		n.paths[0], filepath.Join(n.paths[1], "drop-in.conf"), filepath.Join(units, "kept.service"),
		filepath.Join(n.dirs[0], "osc.yaml"), filepath.Join(n.dirs[1], "alpha.upstream.test", "hosts.toml"),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.expectStart(t, "a.service", "b.service")
	for dir, want := range map[string]string{units: "kept.service", n.dirs[0]: "", n.dirs[1]: ""} {
		if got := entries(t, dir); got != want {
			t.Errorf("%s holds %q, want %q", dir, got, want)
		}
	}
	want := []string{
		"systemctl disable --now -- a.service", "systemctl disable --now -- b.service",
		"systemctl daemon-reload", "systemctl reset-failed",
	}
	if got := n.readLines(t, "calls"); !slices.Equal(got[:min(len(want), len(got))], want) {
		t.Errorf("calls begin with\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStalePaths: a pod that starts before the node has its new pod CIDR must not get an address
// from the previous CIDR.
func TestStalePaths(t *testing.T) {
	applied := appliedOSC{paths: []string{"/opt/bin/a"}}
	for name, test := range map[string]struct {
		stock bool
		want  []string
	}{
		"our pod network": {false, []string{"/opt/bin/a", conflistPath}},
		"kind's":          {true, []string{"/opt/bin/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stalePaths(applied, test.stock); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestStartMachineAgain: a machine starts even if there is no state of a previous machine, not even
// the directories.
func TestStartMachineAgain(t *testing.T) {
	n := newStartedNode(t, otherImages)
	for i := range n.dirs {
		n.dirs[i] = filepath.Join(n.state, "missing")
	}
	n.expectStart(t)
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func TestMachineScriptsPassShellcheck(t *testing.T) {
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed (make tools installs it)")
	}
	for name, script := range map[string]string{"stopMachine": stopMachine, "resetMachine": resetMachine} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), shellcheck, "-s", "bash", "-")
			cmd.Stdin = strings.NewReader(script)
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}
