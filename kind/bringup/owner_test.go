package bringup

import (
	"errors"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

// TestClaim: who has something to remove for a testbed that is his learns of it, and not of one that is refused.
func TestClaim(t *testing.T) {
	for _, tc := range []struct {
		name    string
		replace bool
		claimed int
	}{{"another directory's", false, 0}, {"another directory's, to be replaced", true, 1}} {
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
