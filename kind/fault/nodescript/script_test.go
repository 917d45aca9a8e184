package nodescript

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// node is a folder in which Script runs, with fake programs that record their calls.
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
	return n.bash(t, append([]string{"-euo", "pipefail", "-c", Script, "bash"}, args...)...)
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

func (n node) begin(t *testing.T, f spec.Fault, method Method, argument string) error {
	t.Helper()
	args, err := Begin(f, method, argument)
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.run(t, args...)
	return err
}

func (n node) list(t *testing.T) []string { return n.listed(t, List()) }

// listed returns the IDs that the script prints.
func (n node) listed(t *testing.T, arguments []string) []string {
	t.Helper()
	out, err := n.run(t, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse(out)
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
	if _, err := n.run(t, End(id)...); err != nil {
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
		if err := n.begin(t, f, Drop, address); err != nil {
			t.Fatal(err)
		}
		table, _ := os.ReadFile(filepath.Join(n.directory, "table"))
		if strings.Count(string(table), want) != 2 {
			t.Errorf("table %s, want %q for output and forward", table, want)
		}
		if !strings.Contains(n.calls(t), "--on-active 90s") {
			t.Errorf("no timer of 90 s: %s", n.calls(t))
		}
		if err := n.begin(t, f, Drop, address); err == nil {
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
	if err := n.begin(t, must(t, "upstream/alpha", "refuse", nil).Begin("f2", noon), Reject, "172.18.0.3"); err != nil {
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

func TestUnit(t *testing.T) {
	n := newNode(t)
	f := must(t, "node/worker", "kubelet-stop", nil)
	for _, id := range []string{"f1", "f2"} {
		if err := n.begin(t, f.Begin(id, noon), StopUnit, "kubelet.service"); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.list(t); !slices.Equal(got, []string{"f1", "f2"}) {
		t.Errorf("listed %v", got)
	}
	n.end(t, "f1")
	// Ending f1 started the unit, so f2 is not active and not listed.
	if got := n.list(t); len(got) != 0 || !strings.Contains(n.calls(t), "systemctl start kubelet.service") {
		t.Errorf("listed %v after %s", got, n.calls(t))
	}
	if _, err := os.Stat(filepath.Join(n.directory, "faults/f2")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("list has not ended f2: %v", err)
	}
}

// TestStopped suspends a real process.
func TestStopped(t *testing.T) {
	n := newNode(t)
	f := must(t, "cache/alpha", "stop", nil).Begin("f1", noon)
	if err := n.begin(t, f, StopPods, "kube-system/registry-alpha-0"); err == nil {
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
	if err := n.begin(t, f, StopPods, "kube-system/registry-alpha-0"); err != nil {
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

// matches evaluates nft expressions on a packet that begins with the UDP header.
func matches(t *testing.T, expressions string, packet []byte) bool {
	t.Helper()
	all := regexp.MustCompile(`@th,(\d+),(\d+) 0x([0-9a-f]+)`).FindAllStringSubmatch(expressions, -1)
	if len(all) == 0 {
		t.Fatalf("no expression in %q", expressions)
	}
	for _, one := range all {
		offset, _ := strconv.Atoi(one[1])
		length, _ := strconv.Atoi(one[2])
		want, err := hex.DecodeString(one[3])
		if err != nil || length > 128 || length != 8*len(want) {
			t.Fatalf("%q: length %d, %v", one[0], length, err)
		}
		if end := (offset + length) / 8; end > len(packet) || string(packet[offset/8:end]) != string(want) {
			return false
		}
	}
	return true
}

// ask returns the packet of a DNS query.
func ask(t *testing.T, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	message := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 4711, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := message.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return append(make([]byte, 8), packed...)
}

func TestQuestion(t *testing.T) {
	for _, host := range []string{"alpha.upstream.test", "a.test", strings.Repeat("long.", 40) + "upstream.test"} {
		expressions, err := DNSQuestion(host)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
			if !matches(t, expressions, ask(t, host+".", kind)) {
				t.Errorf("a question for %s (%s) does not match %s", host, kind, expressions)
			}
		}
		for _, other := range []string{"beta.upstream.test.", host + ".cluster.local.", "x" + host + "."} {
			if matches(t, expressions, ask(t, other, dnsmessage.TypeA)) {
				t.Errorf("a question for %s matches the expressions of %s", other, host)
			}
		}
	}
	if again, err := DNSQuestion("a.test."); err != nil || again != fmt.Sprintf("@th,160,64 0x%x", "\x01a\x04test\x00") {
		t.Errorf("a.test. is %s, %v", again, err)
	}
	for _, host := range []string{strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 200), "a..test"} {
		if got, err := DNSQuestion(host); err == nil {
			t.Errorf("%q is %s", host, got)
		}
	}
}
