package bringup

import (
	"errors"
	"os"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// TestDownWithoutState: if nothing is left, Down needs no engine.
func TestDownWithoutState(t *testing.T) {
	bed := kindtest.Stored(t)
	if err := os.RemoveAll(string(bed.State)); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), bed); err != nil {
		t.Error(err)
	}
}

// TestEngineDoesNotAnswer: Down keeps the state, because the clusters may still be running and
// cannot be reached without the state.
func TestEngineDoesNotAnswer(t *testing.T) {
	bed := kindtest.Stored(t)
	for name, verb := range map[string]func() error{
		"Down":   func() error { return Down(t.Context(), bed) },
		"Attach": func() error { return bed.Attach(t.Context()) },
		"Status": func() error { _, err := status.OfTestbed(t.Context(), bed); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := verb(); !errors.As(err, new(*engine.Missing)) {
				t.Errorf("error %v, want an *engine.Missing", err)
			}
			if _, err := os.Stat(bed.State.GardenletLog()); err != nil {
				t.Errorf("the state: %v", err)
			}
		})
	}
}
