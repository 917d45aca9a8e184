package bringup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// fakeNode contains two programs, and a systemctl that records restarts of containerd.
type fakeNode struct {
	folder, containerd, shim string
	pid                      int // of containerd
}

func newFakeNode(t *testing.T) *fakeNode {
	folder := t.TempDir()
	n := &fakeNode{folder: folder, containerd: filepath.Join(folder, "containerd"), shim: filepath.Join(folder, "shim")}
	n.write(t, "systemctl", "#!/bin/sh\nif [ \"$1\" = show ]; then echo \"$PID\"; else echo >>\""+folder+"/restarts\"; fi\n")
	n.write(t, "containerd", "new")
	n.write(t, "shim", "new")
	return n
}

func (n *fakeNode) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.folder, name), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs the script and returns the programs and the number of restarts.
func (n *fakeNode) run(t *testing.T, script string) (containerd, shim string, restarts int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script, "bash", n.containerd, n.shim)
	cmd.Env = append(os.Environ(), "PATH="+n.folder+":"+os.Getenv("PATH"), "PID="+strconv.Itoa(n.pid))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return n.read(t, "containerd"), n.read(t, "shim"), len(n.read(t, "restarts"))
}

func (n *fakeNode) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(n.folder, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}

// start runs the program that is installed as containerd.
func (n *fakeNode) start(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), n.containerd, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	n.pid = cmd.Process.Pid
}

func TestOldContainerd(t *testing.T) {
	n := newFakeNode(t)
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, restarts int) {
		t.Helper()
		containerd, shim := string(sleep), "old"
		gotContainerd, gotShim, gotRestarts := n.run(t, replaceContainerd)
		if gotContainerd != containerd || gotShim != shim || gotRestarts != restarts {
			t.Errorf("%s: containerd %t, shim %q, %d restarts", what, gotContainerd == containerd, gotShim, gotRestarts)
		}
		if left, err := filepath.Glob(filepath.Join(n.folder, "*.new")); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left (%v)", what, left, err)
		}
	}
	stage := func() {
		n.write(t, "containerd.new", string(sleep))
		n.write(t, "shim.new", "old")
	}
	stage()
	expect("replaced", 1)
	stage()
	expect("interrupted before the restart", 2)
	n.start(t)
	stage()
	expect("it runs", 2)
}
