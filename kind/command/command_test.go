package command_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

func TestOutput(t *testing.T) {
	out, err := command.Output(t.Context(), "sh", "-c", "echo out; echo err >&2")
	if err != nil || out != "out\n" {
		t.Errorf("got %q, %v; want standard output only", out, err)
	}
}

func TestFailureTellsWhatWasRun(t *testing.T) {
	_, err := command.Output(t.Context(), "sh", "-c", "printf '%s space left' no >&2; exit 3")
	for _, want := range []string{"sh -c", "exit status 3", "no space left"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	}
	var failed *kindexec.RunError
	if !errors.As(err, &failed) || string(failed.Output) != "no space left" {
		t.Errorf("%#v does not carry the output", err)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Errorf("%v does not unwrap to the exit error", err)
	}
}

func TestFailureTellsWhyTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("no answer in 10ms"))
	defer cancel()
	_, err := command.Output(ctx, "sleep", "60")
	if err == nil || !strings.Contains(err.Error(), "no answer in 10ms") {
		t.Errorf("error %v does not contain the cause", err)
	}
}

func TestTail(t *testing.T) {
	if got := command.Tail("a\nb\nc\n\n", 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
	if got := command.Tail("a", 2); got != "a" {
		t.Errorf("got %q", got)
	}
}
