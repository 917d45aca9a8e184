package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestCarriesMark(t *testing.T) {
	for _, tc := range []struct {
		name, environment string
		want              bool
	}{
		{"marked", "A=b\x00REGISTRY_CACHE_TESTBED=one\x00C=d\x00", true},
		{"another testbed", "REGISTRY_CACHE_TESTBED=one-more\x00", false},
		{"a longer name", "MY_REGISTRY_CACHE_TESTBED=one\x00", false},
		{"empty", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := carriesMark([]byte(tc.environment), "one"); got != tc.want {
				t.Errorf("carriesMark(%q) = %v, want %v", tc.environment, got, tc.want)
			}
		})
	}
}

func TestEndLeftoversEndsOnlyMarkedProcesses(t *testing.T) {
	mark := fmt.Sprintf("leftover-test-%d", os.Getpid()) // the same test may run in another process
	ours := startSleep(t, mark)
	foreign := startSleep(t, mark+"-foreign")

	count, err := EndMarked(t.Context(), "/proc", mark)
	if err != nil || count != 1 {
		t.Fatalf("endLeftovers = %d, %v; want 1 process", count, err)
	}
	<-ours
	select {
	case <-foreign:
		t.Error("the process of another testbed was ended too")
	default:
	}
}

// startSleep starts a marked process; the returned channel is closed when it has ended.
func startSleep(t *testing.T, prefix string) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sleep", "60")
	cmd.Env = []string{processMark + "=" + prefix}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { cancel(); <-ended })
	return ended
}
