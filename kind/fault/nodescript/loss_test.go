package nodescript

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
	if err := n.begin(t, f, LoseMachine, `{"a":"b"}`); err != nil {
		t.Fatal(err)
	}
	if argument, err := os.ReadFile(filepath.Join(n.directory, "faults/f1", filepath.Base(ArgumentFile("f1")))); string(argument) != "{\"a\":\"b\"}\n" {
		t.Errorf("argument %q, %v", argument, err)
	}
	n.write(t, "stopped-kubelet.service", "", 0o644)
	if got := n.list(t); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	// Without gardener-node-agent there is nothing to restore.
	if _, err := n.run(t, Join("f1")...); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(n.directory, "stopped-kubelet.service")); err != nil {
		t.Fatal(err)
	}
	if got := n.list(t); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}
