package progress

import (
	"context"
	"fmt"
	"time"
)

// Within returns a context that ends after the timeout. Its cause is then the error "<what> after
// <timeout>", so what says what did not happen: "the testbed is not up".
func Within(ctx context.Context, timeout time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s after %s", what, timeout))
}
