package pull

import (
	"context"
	"fmt"
	"time"
)

// answerTimeout bounds what takes a node that works moments: a list of containerd's, the removal of an image.
const answerTimeout = time.Minute

// Bound bounds a question to a node, or about one, beside the pull itself: a machine whose containerd hangs never answers. The cause of
// the context that it returns says what to look at.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return boundBy(ctx, answerTimeout)
}

func boundBy(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer after %s (`testbed fault list` says what is broken on purpose, "+
		"`testbed exec NODE -- systemctl status containerd` how the node is)", timeout))
}
