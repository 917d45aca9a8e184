package progress

import (
	"context"
	"fmt"
	"time"
)

// Within returns a context that ends after the timeout, with the cause "<what> after <timeout>".
// What says what did not happen: "the testbed was not up".
func Within(ctx context.Context, timeout time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s after %s", what, timeout))
}
