package nodescript

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestUnresolved(t *testing.T) {
	n := newNode(t)
	question, err := DNSQuestion("alpha.upstream.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.begin(t, must(t, "upstream/alpha", "dns", nil).Begin("f1", noon), RejectDNS, question); err != nil {
		t.Fatal(err)
	}
	table, _ := os.ReadFile(filepath.Join(n.directory, "table"))
	if want := "-300; udp dport 53 " + question + " reject; }"; strings.Count(string(table), want) != 2 {
		t.Errorf("table %s, want %q for output and forward", table, want)
	}
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	n.end(t, "f1")
}

// TestAnswer: nodes ask a cache with HTTPS by its health port, too. If only port 5000 were
// redirected, they would notice the fault minutes later.
func TestAnswer(t *testing.T) {
	n := newNode(t)
	f := must(t, "cache/alpha", "status", map[string][]string{"status": {"503"}}).Begin("f1", noon)
	if err := n.begin(t, f, AnswerForCache, AnswerArgument("/opt/answer", 503, []string{"10.96.0.7", "fd00::7"})); err != nil {
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

func TestPort(t *testing.T) {
	n := newNode(t)
	if err := n.begin(t, must(t, "seed/api", "refuse", nil).Begin("f1", noon), RejectPort, "6443"); err != nil {
		t.Fatal(err)
	}
	table, _ := os.ReadFile(filepath.Join(n.directory, "table"))
	if want := `hook input priority -300; iifname != "lo" tcp dport 6443 reject with tcp reset; }`; !strings.Contains(string(table), want) {
		t.Errorf("table %s, want %q", table, want)
	}
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	n.end(t, "f1")
	if got := n.list(t); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}

// TestFull fills a folder for a real process in a mount namespace.
func TestFull(t *testing.T) {
	n := newNode(t)
	volume := filepath.Join(n.directory, "volume")
	n.write(t, "volume/stored", "content", 0o644)
	const owner = 65532 // user of the cache
	if err := os.Chown(volume, owner, owner); err != nil {
		t.Skipf("mounts need privileges: %v", err)
	}
	f := must(t, "cache/alpha", "disk-full", nil).Begin("f1", noon)
	if err := n.begin(t, f, FillVolumes, "registry-alpha-0="+volume); err == nil {
		t.Error("no error without a container")
	}
	n.end(t, "f1")
	pid := startContainer(t)
	n.write(t, "containers", "c1\n", 0o644)
	n.write(t, "pid-c1", pid, 0o644)
	if err := n.begin(t, f, FillVolumes, "registry-alpha-0="+volume); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join("/proc", pid, "root", volume)
	if content, err := os.ReadFile(filepath.Join(inside, "stored")); string(content) != "content" {
		t.Errorf("content %q, %v", content, err)
	}
	if info, err := os.Stat(inside); err != nil || info.Sys().(*syscall.Stat_t).Uid != owner {
		t.Errorf("the volume has another owner: %+v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(inside, "more"), []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a byte was written: %v", err)
	}
	if err := os.WriteFile(filepath.Join(volume, "elsewhere"), []byte("x"), 0o600); err != nil {
		t.Errorf("the volume itself is full: %v", err)
	}
	if err := n.begin(t, f.Begin("f2", noon), FillVolumes, "registry-alpha-0="+volume); err == nil {
		t.Error("a full volume was filled again")
	}
	n.end(t, "f2")
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	n.end(t, "f1")
	if err := os.WriteFile(filepath.Join(inside, "more"), []byte("x"), 0o600); err != nil {
		t.Errorf("not writable after the fault: %v", err)
	}
	if mounts, err := os.ReadFile("/proc/" + pid + "/mountinfo"); err != nil || strings.Contains(string(mounts), "testbed-fault") {
		t.Errorf("mounts remain: %v\n%s", err, mounts)
	}
}
