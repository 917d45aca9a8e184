package bringup

import (
	"errors"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

// TestClaim: Up replaces the testbed of another checkout only on request.
func TestClaim(t *testing.T) {
	for _, replace := range []bool{false, true} {
		testbed := kindtest.New(t, kind.Options{Replace: replace})
		kindtest.RunElsewhere(t, testbed)
		if err := claim(t.Context(), testbed); errors.As(err, new(*kind.OtherCheckoutError)) == replace {
			t.Errorf("replace %t: error %v", replace, err)
		}
	}
}
