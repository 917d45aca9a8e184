package pull

import (
	"context"
	"fmt"
	"time"
)

// answerTimeout limits requests that take a healthy node seconds, for example to list content.
const answerTimeout = time.Minute

// bound returns a context with a timeout for requests to a node other than the pull itself. A node
// whose containerd hangs never answers. The cause of the context says how to investigate.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return boundBy(ctx, answerTimeout)
}

func boundBy(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer after %s (see `testbed fault list` for injected faults, "+
		"and `testbed exec NODE -- systemctl status containerd`)", timeout))
}
