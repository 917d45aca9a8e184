package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/lock"
)

func TestLockFailure(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		err  error
		busy bool
	}{
		{"another command", t.Context(), fmt.Errorf("waited 30s: %w", lock.ErrBusy), true},
		{"the context has ended", ended, errors.Join(context.Canceled, lock.ErrBusy), false},
		{"disk full", t.Context(), errors.New("no space left on device"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := lockFailure(tc.ctx, "x", tc.err)
			if strings.Contains(got.Error(), "another command changes") != tc.busy || !errors.Is(got, tc.err) {
				t.Errorf("error %q", got)
			}
		})
	}
}
