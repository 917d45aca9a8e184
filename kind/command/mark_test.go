package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestUnmarked(t *testing.T) {
	environ := []string{"A=b", "REGISTRY_CACHE_TESTBED=one", "REGISTRY_CACHE_TESTBED_2=c"}
	if got, want := Unmarked(environ), []string{"A=b", "REGISTRY_CACHE_TESTBED_2=c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if environ[1] != "REGISTRY_CACHE_TESTBED=one" {
		t.Error("the argument was changed")
	}
}

func TestEndMarkedEndsOnlyMarkedProcesses(t *testing.T) {
	mark := fmt.Sprintf("process-test-%d", os.Getpid()) // the same test may run in another process
	marked := startSleep(t, mark)
	other := startSleep(t, mark+"-other")

	count, err := EndMarked(t.Context(), mark)
	if err != nil || count != 1 {
		t.Fatalf("EndMarked = %d, %v; want 1 process", count, err)
	}
	<-marked
	select {
	case <-other:
		t.Error("the process of another testbed was ended too")
	default:
	}
}

// startSleep starts a marked process; the returned channel is closed when it has ended.
func startSleep(t *testing.T, prefix string) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sleep", "60")
	cmd.Env = []string{markVariable + "=" + prefix}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { cancel(); <-ended })
	return ended
}
