package fault

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// node is a folder in which node.sh runs, with fake programs, most of which record their calls.
type node struct{ directory string }

// programs are fake programs. nft creates a file per table, and systemctl one per stopped unit.
var programs = map[string]string{
	"systemd-run": `echo "systemd-run $*" >>calls`,
	"nft": `case "$1 $2" in
"-f -") cat >table; touch "$(sed -n 's/^table inet \(.*\) {/\1/p' table)" ;;
"--check -f") cat >checked ;;
"list table") test -e "$4" ;;
"delete table") rm "$4"; echo "nft $*" >>calls ;;
esac`,
	"systemctl": `echo "systemctl $*" >>calls
case "$1" in
stop) touch "stopped-$2" ;;
start) rm -f "stopped-$2" ;;
enable) ;;
is-active) ! test -e "stopped-$3" ;;
esac`,
	"ss": `cat listening 2>/dev/null || true`,
	"crictl": `echo "crictl $*" >>calls
case "$1" in
ps) cat containers 2>/dev/null || true ;;
inspect) cat "pid-${!#}" ;;
esac`,
}

func newNode(t *testing.T) node {
	t.Helper()
	n := node{t.TempDir()}
	for name, text := range programs {
		n.write(t, "bin/"+name, "#!/bin/bash\n"+text+"\n", 0o755)
	}
	return n
}

func (n node) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(n.directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func (n node) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return n.bash(t, append([]string{"-euo", "pipefail", "-c", script, "bash"}, args...)...)
}

func (n node) bash(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", args...)
	cmd.Dir = n.directory
	cmd.Env = []string{"PATH=" + n.directory + "/bin:" + os.Getenv("PATH"), "TESTBED_FAULTS=" + n.directory + "/faults"}
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Logf("%v: %s", args[max(0, len(args)-3):], failed.Stderr)
	}
	return string(out), err
}

func (n node) begin(t *testing.T, f spec.Fault, argument string) error {
	t.Helper()
	args, err := begin(f, argument)
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.run(t, args...)
	return err
}

func (n node) list(t *testing.T) []string { return n.listed(t, "list") }

// listed returns the IDs that the script prints.
func (n node) listed(t *testing.T, argument string) []string {
	t.Helper()
	out, err := n.run(t, argument)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(out)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, f := range all {
		ids = append(ids, f.ID)
	}
	return ids
}

func (n node) calls(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(n.directory, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

func (n node) end(t *testing.T, id string) {
	t.Helper()
	if _, err := n.run(t, "end", id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(n.directory, "faults", id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("fault %s remains after its end: %v", id, err)
	}
}

func TestUnreachable(t *testing.T) {
	for address, want := range map[string]string{
		"10.96.0.7":         "-300; ip daddr 10.96.0.7 drop; }",
		"10.96.0.7 fd00::7": "-300; ip daddr 10.96.0.7 drop; ip6 daddr fd00::7 drop; }",
	} {
		n := newNode(t)
		f := must(t, "cache/alpha", "blackhole", map[string][]string{"for": {"1m30s"}}).Begin("f1", noon)
		if err := n.begin(t, f, address); err != nil {
			t.Fatal(err)
		}
		table, _ := os.ReadFile(filepath.Join(n.directory, "table"))
		if strings.Count(string(table), want) != 2 {
			t.Errorf("table %s, want %q for output and forward", table, want)
		}
		if !strings.Contains(n.calls(t), "--on-active 90s") {
			t.Errorf("no timer of 90 s: %s", n.calls(t))
		}
		if err := n.begin(t, f, address); err == nil {
			t.Error("a second fault with the same ID began")
		}
		if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
			t.Errorf("listed %v", got)
		}
		// The timer runs a copy of the script.
		if _, err := n.bash(t, filepath.Join(n.directory, "faults/f1/node.sh"), "end", "f1"); err != nil {
			t.Fatal(err)
		}
		if got := n.list(t); len(got) != 0 || !strings.Contains(n.calls(t), "nft delete table inet testbed-fault-f1") {
			t.Errorf("after the timer: %v, %s", got, n.calls(t))
		}
		n.end(t, "f1") // f1 has already ended
	}
}

func TestRefused(t *testing.T) {
	n := newNode(t)
	if err := n.begin(t, must(t, "upstream/alpha", "refuse", nil).Begin("f2", noon), "172.18.0.3"); err != nil {
		t.Fatal(err)
	}
	table, _ := os.ReadFile(filepath.Join(n.directory, "table"))
	if !strings.Contains(string(table), "reject with tcp reset") {
		t.Errorf("table %s", table)
	}
	if strings.Contains(n.calls(t), "systemd-run") {
		t.Error("a fault without a duration has a timer")
	}
	n.end(t, "f2")
}

// TestStopped suspends a real process.
func TestStopped(t *testing.T) {
	n := newNode(t)
	f := must(t, "cache/alpha", "stop", nil).Begin("f1", noon)
	if err := n.begin(t, f, "kube-system/registry-alpha-0"); err == nil {
		t.Error("no error without a container")
	}
	n.end(t, "f1")
	process := exec.CommandContext(t.Context(), "sleep", "60")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	n.write(t, "containers", "c1\n", 0o644)
	n.write(t, "pid-c1", strconv.Itoa(process.Process.Pid)+"\n", 0o644)
	if err := n.begin(t, f, "kube-system/registry-alpha-0"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, process.Process.Pid, true)
	if want := "io.kubernetes.pod.namespace=kube-system --label io.kubernetes.pod.name=registry-alpha-0\n"; !strings.Contains(n.calls(t), want) {
		t.Errorf("no %q in %s", want, n.calls(t))
	}
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	n.end(t, "f1")
	awaitState(t, process.Process.Pid, false)
	if got := n.list(t); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}

func awaitState(t *testing.T, pid int, stopped bool) {
	t.Helper()
	var status []byte
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		var err error
		status, err = os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		return strings.Contains(string(status), "State:\tT") == stopped, err
	})
	if err != nil {
		t.Fatalf("process state, want stopped %t: %v\n%s", stopped, err, status)
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func must(t *testing.T, target, kind string, options map[string][]string) spec.Fault {
	t.Helper()
	f, err := spec.New(target, kind, options)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAnswer: nodes also probe the health port of a cache with HTTPS. If only port 5000 were
// redirected, they would notice the fault minutes later.
func TestAnswer(t *testing.T) {
	n := newNode(t)
	f := must(t, "cache/alpha", "status", map[string][]string{"status": {"503"}}).Begin("f1", noon)
	if err := n.begin(t, f, "/opt/answer 503 10.96.0.7 fd00::7"); err != nil {
		t.Fatal(err)
	}
	table, _ := os.ReadFile(filepath.Join(n.directory, "table"))
	for _, want := range []string{
		"ip daddr 10.96.0.7 tcp dport { 5000, 5001 } redirect to :6441;", "ip6 daddr fd00::7 tcp dport { 5000, 5001 } redirect to :6441;",
	} {
		if !strings.Contains(string(table), want) {
			t.Errorf("table %s, want %q", table, want)
		}
	}
	n.end(t, "f1")
	if got := n.list(t); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}

// TestLook checks that `look` lists only active faults, and leaves other faults as they are: one
// that has ended, and one that is being deleted. `list` also ends the former.
func TestLook(t *testing.T) {
	n := newNode(t)
	look := func() []string { return n.listed(t, "look") }
	if got := look(); len(got) != 0 {
		t.Errorf("faults of a new node: %v", got)
	}
	for _, id := range []string{"f1", "f2"} {
		if err := n.begin(t, must(t, "cache/alpha", "blackhole", nil).Begin(id, noon), "10.96.0.7"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(n.directory, "testbed-fault-f2")); err != nil { // the table of nft
		t.Fatal(err)
	}
	// f3 is being deleted: its folder is incomplete.
	n.write(t, "faults/f3/description", "{}\n", 0o644)
	before := n.calls(t)
	if got := look(); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	for _, id := range []string{"f1", "f2", "f3"} {
		if _, err := os.Stat(filepath.Join(n.directory, "faults", id)); err != nil {
			t.Errorf("look ended %s: %v", id, err)
		}
	}
	if after := n.calls(t); after != before {
		t.Errorf("calls:\n%s\nbefore:\n%s", after, before)
	}
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	if _, err := os.Stat(filepath.Join(n.directory, "faults/f2")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("list has not ended f2: %v", err)
	}
}
