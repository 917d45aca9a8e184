package bringup

import (
	"errors"
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
