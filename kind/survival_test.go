package kind

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/fault"
)

const (
	// survivalSwitch asks for TestSurvival, which takes minutes: it brings a testbed up beside those that are there, and kills what
	// it can. With the value "engine" also the Docker Engine, on which all testbeds of the machine run.
	survivalSwitch = "TESTBED_SURVIVAL"
	survivalVerb   = "TESTBED_SURVIVAL_VERB"
	survivalFolder = "TESTBED_SURVIVAL_FOLDER"
	survivalPrefix = "survival"
)

// survivor is the testbed of TestSurvival, whose state lies on a small disk of its own.
type survivor struct{ folder string }

func (s survivor) options() Options {
	return Options{Prefix: survivalPrefix, Directory: s.folder, Out: os.Stderr}
}

func (s survivor) testbed(t *testing.T) *Testbed {
	t.Helper()
	testbed, err := New(s.options())
	if err != nil {
		t.Fatal(err)
	}
	return testbed
}

// attached is another process's view of the testbed.
func (s survivor) attached(t *testing.T) *Testbed {
	t.Helper()
	testbed := s.testbed(t)
	if err := testbed.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	return testbed
}

// TestSurvival kills verbs, and the engine where it is asked for, fills the disk with the testbed's state, and proves each time that
// Down leaves nothing.
func TestSurvival(t *testing.T) {
	if os.Getenv(survivalSwitch) == "" {
		t.Skipf("it takes minutes and needs an engine: set %s", survivalSwitch)
	}
	s := survivor{t.TempDir()}
	if err := unix.Mount("testbed-survival", s.folder, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("a disk of its own needs privileges: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	before := s.volumes(t)
	t.Cleanup(func() { _ = s.testbed(t).Down(context.WithoutCancel(t.Context())) })

	t.Run("killed while it comes up", func(t *testing.T) {
		s.kill(t, "up", s.hasContainer(t, "-shoot-control-plane"))
		s.down(t, before)
		s.down(t, before) // of nothing
	})
	t.Run("killed while it is up", func(t *testing.T) {
		if err := s.testbed(t).Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.kill(t, "loss", s.stopping(t))
		s.expectFault(t, fault.Loss)
		if os.Getenv(survivalSwitch) == "engine" {
			s.killEngine(t)
		}
		s.fillDisk(t)
		if status, err := s.testbed(t).Status(t.Context()); err != nil || len(status.Clusters) != 2 {
			t.Errorf("status on a full disk: %+v, %v", status, err)
		}
		s.kill(t, "down", func() bool { return !s.hasContainer(t, "-seed-control-plane")() })
		s.down(t, before)
	})
}

// TestSurvivalVerb is what the killed processes run.
func TestSurvivalVerb(t *testing.T) {
	s := survivor{os.Getenv(survivalFolder)}
	switch os.Getenv(survivalVerb) {
	case "":
		t.Skip("it is for TestSurvival")
	case "up":
		t.Error(s.testbed(t).Up(t.Context()))
	case "down":
		t.Error(s.testbed(t).Down(t.Context()))
	case "loss":
		wanted, err := fault.New("node/worker2", "loss", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.attached(t).AddFault(t.Context(), wanted)
		t.Error(err)
	}
}

// kill runs a verb in a process of its own and kills that as soon as the time has come.
func (s survivor) kill(t *testing.T, verb string, now func() bool) {
	t.Helper()
	var output bytes.Buffer
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSurvivalVerb$")
	process.Env = append(os.Environ(), survivalVerb+"="+verb, survivalFolder+"="+s.folder)
	process.Stdout, process.Stderr = &output, &output
	process.WaitDelay = time.Second // its children have its output too
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = process.Wait(); close(ended) }()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
		select {
		case <-ended:
			return true, errors.New("it has ended by itself")
		default:
			return now(), nil
		}
	})
	_ = process.Process.Kill()
	<-ended
	if err != nil {
		t.Fatalf("%s was not killed: %v\n%s", verb, err, output.String())
	}
	t.Logf("%s was killed", verb)
}

func (s survivor) hasContainer(t *testing.T, suffix string) func() bool {
	return func() bool {
		_, err := command.Output(t.Context(), "docker", "inspect", "--format", "{{.Id}}", survivalPrefix+suffix)
		return err == nil
	}
}

// stopping says whether the kubelet of the machine that is to be lost does not run any more.
func (s survivor) stopping(t *testing.T) func() bool {
	return func() bool {
		_, err := command.Output(t.Context(), "docker", "exec", survivalPrefix+"-shoot-worker2", "systemctl", "is-active", "--quiet", "kubelet.service")
		return err != nil
	}
}

func (s survivor) expectFault(t *testing.T, kind fault.Kind) {
	t.Helper()
	testbed := s.attached(t)
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		all, err := testbed.Faults(ctx)
		return len(all) == 1 && all[0].Kind == kind, err
	})
	if err != nil {
		t.Errorf("the fault of a killed process is not listed: %v", err)
	}
}

// killEngine kills dockerd. Whoever asks next starts it again.
func (s survivor) killEngine(t *testing.T) {
	t.Helper()
	pid, err := os.ReadFile("/var/run/docker.pid")
	if err != nil {
		t.Fatalf("the engine was to be killed, and is not one of this machine: %v", err)
	}
	if _, err := command.Output(t.Context(), "kill", "-KILL", strings.TrimSpace(string(pid))); err != nil {
		t.Fatal(err)
	}
	status, err := s.testbed(t).Status(t.Context())
	if err != nil || len(status.Clusters) != 2 {
		t.Errorf("status after the engine was killed: %+v, %v", status, err)
	}
	if err := s.testbed(t).Up(t.Context()); err != nil {
		t.Errorf("up after the engine was killed: %v", err)
	}
}

// fillDisk leaves no byte where the testbed keeps its state.
func (s survivor) fillDisk(t *testing.T) {
	t.Helper()
	file, err := os.Create(filepath.Join(s.folder, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for part := make([]byte, 4096); err == nil; {
		_, err = file.Write(part)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// down takes the testbed down and looks for what is left.
func (s survivor) down(t *testing.T, before string) {
	t.Helper()
	testbed := s.testbed(t)
	if err := testbed.Down(t.Context()); err != nil {
		t.Errorf("down: %v", err)
	}
	left, err := command.Output(t.Context(), "docker", "ps", "--all", "--quiet", "--filter", "name=^"+survivalPrefix+"-")
	if err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("containers are left: %s, %v", left, err)
	}
	if processes, err := markedProcesses("/proc", survivalPrefix); err != nil || len(processes) > 0 {
		t.Errorf("processes are left: %v, %v", processes, err)
	}
	if _, err := os.Stat(string(testbed.state)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state is left: %v", err)
	}
	if after := s.volumes(t); after != before {
		t.Errorf("volumes before:\n%s\nafter:\n%s", before, after)
	}
}

func (s survivor) volumes(t *testing.T) string {
	t.Helper()
	all, err := command.Output(t.Context(), "docker", "volume", "ls", "--quiet")
	if err != nil {
		t.Fatal(err)
	}
	return all
}
