package fault

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestFull makes a folder appear full to a real process in its own mount namespace.
func TestFull(t *testing.T) {
	n := newNode(t)
	volume := filepath.Join(n.directory, "volume")
	n.write(t, "volume/stored", "content", 0o644)
	const owner = 65532 // the user ID of the cache's process
	if err := os.Chown(volume, owner, owner); err != nil {
		t.Skipf("mounts need privileges: %v", err)
	}
	f := must(t, "cache/alpha", "disk-full", nil).Begin("f1", noon)
	if err := n.begin(t, f, "registry-alpha-0="+volume); err == nil {
		t.Error("no error without a container")
	}
	n.end(t, "f1")
	pid := startContainer(t)
	n.write(t, "containers", "c1\n", 0o644)
	n.write(t, "pid-c1", pid, 0o644)
	if err := n.begin(t, f, "registry-alpha-0="+volume); err != nil {
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
	if err := n.begin(t, f.Begin("f2", noon), "registry-alpha-0="+volume); err == nil {
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

// startContainer starts a process in new mount and PID namespaces, with its own /proc, and returns
// the process ID. The process sees the files of the host.
func startContainer(t *testing.T) string {
	t.Helper()
	container := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "cat")
	input, err := container.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := container.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := container.Start(); err != nil {
		t.Skipf("no unshare: %v", err)
	}
	t.Cleanup(func() { _ = container.Process.Kill(); _ = container.Wait() })
	if _, err := io.WriteString(input, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Skipf("mounts need privileges: %v", err)
	}
	parent := strconv.Itoa(container.Process.Pid)
	children, err := os.ReadFile("/proc/" + parent + "/task/" + parent + "/children")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(children))
}

func TestLoss(t *testing.T) {
	n := newNode(t)
	f := must(t, "node/worker2", "loss", nil).Begin("f1", noon)
	if err := n.begin(t, f, `{"a":"b"}`); err != nil {
		t.Fatal(err)
	}
	if argument, err := os.ReadFile(filepath.Join(n.directory, "faults/f1", filepath.Base(argumentFile("f1")))); string(argument) != "{\"a\":\"b\"}\n" {
		t.Errorf("argument %q, %v", argument, err)
	}
	n.write(t, "stopped-kubelet.service", "", 0o644)
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	// Without gardener-node-agent there is nothing to restore.
	if _, err := n.run(t, "join", "f1"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(n.directory, "stopped-kubelet.service")); err != nil {
		t.Fatal(err)
	}
	if got := n.list(t); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}
