package registry

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// firstPause and longestPause are those between two questions whether an upstream tells how it authenticates.
	firstPause   = 5 * time.Second
	longestPause = time.Minute
	// patientTimeout is how long it has for the answer: more than at the start, where nodes wait.
	patientTimeout = 30 * time.Second
)

// awaitTokens asks the upstream until it tells how it authenticates, and closes the channel that it returns if it wants tokens.
// distribution learns at its start only where to get them for its credentials: without that it would show them to nobody.
func (p *pinger) awaitTokens(ctx context.Context) <-chan struct{} {
	wanted := make(chan struct{})
	go func() {
		endpoint := p.remote.JoinPath("v2/")
		for pause := firstPause; ; pause = min(2*pause, longestPause) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(jittered(pause)):
			}
			answer, err := ping(ctx, p.next, endpoint, patientTimeout)
			if err != nil || !answer.tells() {
				continue
			}
			if answer.wantsToken() {
				close(wanted)
			}
			return
		}
	}()
	return wanted
}

// jittered spreads the two instances of a cache, which would otherwise end at the same moment.
func jittered(pause time.Duration) time.Duration { return pause/2 + rand.N(pause) }
