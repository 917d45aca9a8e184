package pull

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a node that never answers, like one whose containerd hangs.
type silent struct{}

func (silent) Script(ctx context.Context, _ string, _ ...string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// TestSilentNode checks that each request to a node times out, with an error that names the request
// and the timeout.
func TestSilentNode(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(ctx context.Context) error
		want string
		took time.Duration
	}{
		"look": {func(ctx context.Context) error {
			_, err := contentOf(ctx, silent{})
			return err
		}, "list addresses and content of the node: no answer after 1m0s (", time.Minute},
		"forget": {func(ctx context.Context) error {
			return forget(ctx, silent{}, testImage)
		}, "remove alpha.upstream.test/shop/web:v1 from the node: no answer after 1m0s (", time.Minute},
		"a pull that its timeout does not end": {func(ctx context.Context) error {
			_, _, err := runOn(ctx, silent{}, testImage, 5*time.Minute)
			return err
		}, "pull alpha.upstream.test/shop/web:v1: no answer after 6m0s (", 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // ends requests without a timeout
				defer cancel()
				start := time.Now()
				err := test.ask(ctx)
				if took := time.Since(start); err == nil || !strings.HasPrefix(err.Error(), test.want) || took != test.took {
					t.Errorf("error %v after %s, want %q after %s", err, took, test.want, test.took)
				}
			})
		})
	}
}
