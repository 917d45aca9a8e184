package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/file"
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
		{"another command", t.Context(), fmt.Errorf("waited 30s: %w", file.ErrLocked), true},
		{"the context has ended", ended, errors.Join(context.Canceled, file.ErrLocked), false},
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
