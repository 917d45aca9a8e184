package engine

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestZombieProcess: in a container whose init process does not reap zombies, a killed dockerd
// keeps its process ID.
func TestZombieProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Wait() })
	file := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(file, fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := processBecomes(t, file, child.Process.Pid); got != child.Process.Pid {
		t.Errorf("a living process: got %d", got)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := processBecomes(t, file, 0); got != 0 {
		t.Errorf("a zombie: got %d", got)
	}
}

// processBecomes polls for up to a minute until runningPID returns want: the kernel takes time to
// start or kill a process.
func processBecomes(t *testing.T, file string, want int) int {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := runningPID(file, "sleep")
		if err != nil {
			t.Fatal(err)
		}
		if got == want {
			return got
		}
		select {
		case <-deadline:
			return got
		case <-tick.C:
		}
	}
}

func TestRemoveSandboxes(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"netns/0d9bbac46534", "netns/default", "libnetwork/79cdb894ad2e.sock", "libnetwork/keep", "containerd/containerd.toml"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing left to remove
		if err := removeSandboxes(root); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			left = append(left, path)
		}
		return err
	})
	if want := []string{"containerd/containerd.toml", "libnetwork/keep"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v; want %v", left, err, want)
	}
}
