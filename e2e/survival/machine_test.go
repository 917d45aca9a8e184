//go:build e2e

package survival

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	prefix   = "survival"
	dataRoot = "/var/lib/docker"
	state    = ".testbed"
)

// machine remembers what existed before the first verb, and the containers that have existed since.
type machine struct {
	before inventory // before the first verb
	// seen contains the IDs of all containers that recordContainers has found.
	seen map[string]bool
}

// verb is one execution of a testbed command. It is running or has ended.
type verb struct {
	process *exec.Cmd
	answer  bytes.Buffer // standard output
	prose   bytes.Buffer // standard error
	ended   chan struct{}
	began   time.Time
}

// start starts and returns a verb, and kills the verb if it still runs after the bound.
func (m *machine) start(t *testing.T, bound time.Duration, args ...string) *verb {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	v := &verb{ended: make(chan struct{}), began: time.Now()}
	v.process = exec.CommandContext(ctx, "bin/testbed", append([]string{"--prefix", prefix}, args...)...)
	v.process.Stdout, v.process.Stderr = &v.answer, &v.prose
	v.process.WaitDelay = time.Second // children of the process can keep its output open
	if err := v.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = v.process.Wait(); cancel(); close(v.ended) }()
	return v
}

// run runs a verb to its end and returns it with its exit code.
func (m *machine) run(t *testing.T, bound time.Duration, args ...string) (*verb, int) {
	t.Helper()
	v := m.start(t, bound, args...)
	<-v.ended
	code, took := v.process.ProcessState.ExitCode(), time.Since(v.began).Round(100*time.Millisecond)
	t.Logf("testbed %s: exit code %d after %s\n%s", strings.Join(args, " "), code, took, v.prose.String())
	if took >= bound {
		t.Fatalf("testbed %s did not end within %s", strings.Join(args, " "), bound)
	}
	m.recordContainers(t)
	return v, code
}

// must runs a verb, fails the test unless the verb succeeds, and returns its standard output.
func (m *machine) must(t *testing.T, bound time.Duration, args ...string) string {
	t.Helper()
	v, code := m.run(t, bound, args...)
	if code != 0 {
		t.Fatalf("testbed %s: exit code %d\n%s%s", strings.Join(args, " "), code, v.answer.String(), v.prose.String())
	}
	return strings.TrimSpace(v.answer.String())
}

// kill runs a verb and kills the verb as soon as the condition holds. The test fails if the verb
// ends earlier.
func (m *machine) kill(t *testing.T, now func() bool, args ...string) {
	t.Helper()
	v := m.start(t, 5*time.Minute, args...)
	m.await(t, v, now)
	if err := v.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-v.ended
	m.recordContainers(t)
	t.Logf("testbed %s: killed after %s", strings.Join(args, " "), time.Since(v.began).Round(100*time.Millisecond))
}

// await waits until the condition holds. The test fails if the verb ends earlier.
func (m *machine) await(t *testing.T, v *verb, now func() bool) {
	t.Helper()
	err := wait.PollUntilContextCancel(t.Context(), 50*time.Millisecond, true, func(context.Context) (bool, error) {
		select {
		case <-v.ended:
			return false, errors.New("the command ended too early")
		default:
			return now(), nil
		}
	})
	if err != nil {
		t.Fatalf("%v: %v\n%s", v.process.Args, err, v.prose.String())
	}
}

// recordContainers notes the current containers. nothingLeft checks that their cgroups are gone.
func (m *machine) recordContainers(t *testing.T) {
	t.Helper()
	ids, err := containers(t.Context())
	if err != nil {
		return // the engine does not run
	}
	for _, id := range ids {
		m.seen[id] = true
	}
}

// down removes the testbed and checks that nothing is left.
func (m *machine) down(t *testing.T) {
	t.Helper()
	m.recordContainers(t)
	m.must(t, 3*time.Minute, "down")
	m.nothingLeft(t)
}

func (m *machine) nothingLeft(t *testing.T) {
	t.Helper()
	for _, thing := range takeInventory(t).leftSince(m.before) {
		t.Errorf("left after down: %s", thing)
	}
	for id := range m.seen {
		if left, err := cgroups(id); err != nil || len(left) > 0 {
			t.Errorf("cgroups are left: %v, %v", left, err)
		}
	}
}

func hasContainer(t *testing.T, suffix string) func() bool {
	return func() bool { return exec.CommandContext(t.Context(), "docker", "inspect", prefix+suffix).Run() == nil }
}

// signalEngine sends a signal to dockerd and returns when dockerd has exited.
func signalEngine(t *testing.T, signal syscall.Signal) {
	t.Helper()
	text, err := os.ReadFile("/var/run/docker.pid")
	if err != nil {
		t.Fatalf("find the engine: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatalf("%s to dockerd: %v", signal, err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return errors.Is(err, fs.ErrNotExist) || len(command) == 0, nil
	})
	if err != nil {
		t.Fatalf("dockerd, process %d, still runs after %s: %v", pid, signal, err)
	}
	t.Logf("dockerd exited after signal %s", signal)
}

// fill fills the file system of the folder until about left bytes are free, and returns the path of
// the file that it created.
func fill(t *testing.T, folder string, left uint64) (filler string) {
	t.Helper()
	filler = filepath.Join(folder, "filler")
	file, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &disk); err != nil {
		t.Fatal(err)
	}
	more := int64(disk.Bavail*uint64(disk.Bsize)) - int64(left)
	// The overhead of the file system is unknown, so halve the size until the allocation succeeds.
	for size := info.Size(); more >= disk.Bsize; {
		err := unix.Fallocate(int(file.Fd()), 0, size, more)
		switch {
		case err == nil && left > 0:
			return filler
		case err == nil:
			size += more
		case errors.Is(err, unix.ENOSPC):
			more /= 2
		default:
			t.Fatal(err)
		}
	}
	return filler
}

// free removes the filler.
func free(t *testing.T, filler string) {
	t.Helper()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
}
