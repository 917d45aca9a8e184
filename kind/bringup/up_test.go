package bringup

import (
	"errors"
	"os"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

// TestClaim: Claimed is called only if Up may use the prefix.
func TestClaim(t *testing.T) {
	for _, tc := range []struct {
		name    string
		replace bool
		claimed int
	}{{"owned by another checkout", false, 0}, {"owned by another checkout, to be replaced", true, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			claimed := 0
			testbed := kindtest.New(t, kind.Options{Replace: tc.replace, Claimed: func() { claimed++ }})
			kindtest.RunElsewhere(t, testbed)
			if err := claim(t.Context(), testbed); errors.As(err, new(*kind.OtherCheckoutError)) == tc.replace || claimed != tc.claimed {
				t.Errorf("claimed %d times, error %v", claimed, err)
			}
		})
	}
}

// TestPlantedBug: the recorded bug remains until an Up without one has succeeded.
func TestPlantedBug(t *testing.T) {
	testbed := kindtest.New(t, kind.Options{})
	if err := os.MkdirAll(string(testbed.State), 0o755); err != nil {
		t.Fatal(err)
	}
	want := func(name string) {
		t.Helper()
		if got, err := testbed.PlantedBug(); got != name || err != nil {
			t.Errorf("%q is planted, error %v; want %q", got, err, name)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want("")
	check(forgetPlantedBug(t.Context(), testbed)) // nothing to forget
	testbed.Planted = &kind.PlantedBug{Name: "volume-lost"}
	check(recordPlantedBug(testbed))
	check(forgetPlantedBug(t.Context(), testbed))
	want("volume-lost")
	testbed.Planted = nil
	check(recordPlantedBug(testbed))
	want("volume-lost")
	check(forgetPlantedBug(t.Context(), testbed))
	want("")
}
