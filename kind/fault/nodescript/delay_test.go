package nodescript

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDelay checks that connections are redirected to a running proxy, and that nothing remains
// after the fault.
func TestDelay(t *testing.T) {
	n := newNode(t)
	program := filepath.Join(n.directory, "testbed-delay-f1")
	n.write(t, "testbed-delay-f1", "", 0o755)
	f := must(t, "shoot/api", "latency", map[string][]string{"delay": {"1.5s"}, "for": {"1m"}}).Begin("f1", noon)
	argument := DelayArgument(program, time.Duration(f.Delay), "6443", []string{"10.96.0.1", "fd00::1"})
	if _, err := n.run(t, Check(DelayAnswers, argument)...); err != nil {
		t.Fatal(err)
	}
	if err := n.begin(t, f, DelayAnswers, argument); err != nil {
		t.Fatal(err)
	}
	table, _ := os.ReadFile(filepath.Join(n.directory, "table"))
	checked, _ := os.ReadFile(filepath.Join(n.directory, "checked"))
	for _, want := range []string{
		"hook prerouting priority -110;", `iifname != "lo" fib daddr type local tcp dport 6443 redirect to :6440`,
		`iifname != "lo" ip daddr 10.96.0.1 tcp dport 443 redirect to :6440`, `iifname != "lo" ip6 daddr fd00::1 tcp dport 443 redirect to :6440`,
		`iifname != "lo" tcp dport 6443 reject with tcp reset`,
	} {
		if !strings.Contains(string(table), want) || !strings.Contains(string(checked), want) {
			t.Errorf("%q is not in the table %s, or not in the checked one: %s", want, table, checked)
		}
	}
	if want := "--unit testbed-delay-f1 --property Type=notify " + program + " :6440 127.0.0.1:6443 1.5s\n"; !strings.Contains(n.calls(t), want) {
		t.Errorf("no %q in %s", want, n.calls(t))
	}
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	n.end(t, "f1")
	if !strings.Contains(n.calls(t), "nft delete table inet testbed-fault-f1\nsystemctl stop testbed-delay-f1.service\n") {
		t.Errorf("calls %s", n.calls(t))
	}
	if _, err := os.Stat(program); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program remains: %v", err)
	}
}

// TestDelayWithoutProxy checks that `list` ends the fault if the proxy has ended, because then no
// connection can succeed.
func TestDelayWithoutProxy(t *testing.T) {
	n := newNode(t)
	f := must(t, "seed/api", "latency", map[string][]string{"delay": {"1s"}}).Begin("f1", noon)
	if err := n.begin(t, f, DelayAnswers, DelayArgument("/nowhere", time.Second, "6443", nil)); err != nil {
		t.Fatal(err)
	}
	n.write(t, "stopped-testbed-delay-f1.service", "", 0o644)
	if got := n.list(t); len(got) > 0 || !strings.Contains(n.calls(t), "nft delete table inet testbed-fault-f1") {
		t.Errorf("listed %v; calls %s", got, n.calls(t))
	}
}

// TestSecondDelay checks that the script's check fails if the port of the proxy is in use.
func TestSecondDelay(t *testing.T) {
	n := newNode(t)
	n.write(t, "listening", "LISTEN 0 4096 *:6440 *:*\n", 0o644)
	if _, err := n.run(t, Check(DelayAnswers, DelayArgument("/nowhere", time.Second, "6443", nil))...); err == nil {
		t.Error("no error for a port in use")
	}
}
