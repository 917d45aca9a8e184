package trace

import (
	"fmt"
	"time"
)

// tracePatience bounds the wait for pulls of which nothing is heard. containerd gives one up that
// makes no progress for five minutes (image_pull_progress_timeout): the end of one that is silent
// for longer was never logged.
const tracePatience = 6 * time.Minute

// traceWatch decides when there is nothing to wait for any more.
type traceWatch struct {
	heard time.Time // when the last event came
	quiet time.Time // since when no pull is under way; zero while one is
}

// over says whether nothing is under way, for long enough that no log has more; or, with an error,
// that nothing was heard for too long of what is. events came since it was asked before.
func (w *traceWatch) over(now time.Time, events int, underWay []Event) (bool, error) {
	if events > 0 {
		w.heard = now
	}
	if len(underWay) > 0 {
		w.quiet = time.Time{}
		if now.Sub(w.heard) < tracePatience {
			return false, nil
		}
		first := underWay[0]
		return true, fmt.Errorf("nothing was heard for %s of what by the logs has not ended (pulls: %d; the first of %s on %s, begun at %s): "+
			"`testbed doctor` tells how the node is, and -f waits on",
			tracePatience, len(underWay), first.What, first.From, first.Time.UTC().Format(time.TimeOnly))
	}
	if w.quiet.IsZero() {
		w.quiet = now
	}
	return now.Sub(w.quiet) > 2*traceDelay, nil
}
