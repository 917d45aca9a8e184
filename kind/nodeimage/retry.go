package nodeimage

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// fetchBackoff allows three attempts to download something, within half a minute.
var fetchBackoff = wait.Backoff{Steps: 3, Duration: 5 * time.Second, Factor: 3, Jitter: 0.1}

// retry calls fetch until it succeeds, the backoff is used up or ctx is done. The error is the last
// one of fetch.
func retry(ctx context.Context, backoff wait.Backoff, what string, fetch func(context.Context) error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = fetch(ctx)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case last == nil: // ctx was done before the first attempt
		last = err
	}
	return fmt.Errorf("%s (tried up to %d times): %w", what, backoff.Steps, last)
}
