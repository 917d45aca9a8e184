package bringup

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// stored returns a testbed with a state folder, on an engine that does not answer.
func stored(t *testing.T) *kind.Testbed {
	t.Helper()
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "docker.sock"))
	bed, err := kind.New(kind.Options{Prefix: "no-answer-to-a-test", Directory: t.TempDir(), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	bed.Locks = kind.NewLocks(t.TempDir(), bed.Prefix, bed.Root)
	if err := os.MkdirAll(string(bed.State), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bed.State.Garden(), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return bed
}

// TestDownWithoutState: where nothing is left, it does not matter which engine does not answer.
func TestDownWithoutState(t *testing.T) {
	bed := stored(t)
	if err := os.RemoveAll(string(bed.State)); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), bed); err != nil {
		t.Error(err)
	}
}

// TestAnEngineThatDoesNotAnswer is about clusters that may run, and that nobody can reach any more without the state.
func TestAnEngineThatDoesNotAnswer(t *testing.T) {
	bed := stored(t)
	for name, verb := range map[string]func() error{
		"Down":     func() error { return Down(t.Context(), bed) },
		"PlanDown": func() error { _, err := PlanDown(t.Context(), bed); return err },
		"Attach":   func() error { return bed.Attach(t.Context()) },
		"Status":   func() error { _, err := status.OfTestbed(t.Context(), bed); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := verb(); !errors.As(err, new(*engine.Missing)) {
				t.Errorf("error is %v, want an *engine.Missing", err)
			}
			if _, err := os.Stat(bed.State.Garden()); err != nil {
				t.Errorf("the state: %v", err)
			}
		})
	}
}
