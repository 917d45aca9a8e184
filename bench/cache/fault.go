package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Fault is one way in which upstream or volume fail.
type Fault struct {
	Name    string              `json:"name"`
	Skipped string              `json:"skipped,omitempty"` // the reason
	Outcome map[string][]Answer `json:"outcome,omitempty"` // by contender
}

// Answer is what clients got while something failed.
type Answer struct {
	Asked   string `json:"asked"` // for what
	Clients int    `json:"clients"`
	Whole   int    `json:"whole"` // clients that got all bytes
	// Seconds is the time to the first byte, or to the error, of the slowest client.
	Seconds float64 `json:"seconds"`
	Failure string  `json:"failure,omitempty"`
	// Upstream is what these clients caused, nil if others asked at the same time.
	Upstream *Traffic `json:"upstream,omitempty"`
}

func answerOf(asked string, answers []reply) Answer {
	a := Answer{Asked: asked, Clients: len(answers)}
	for _, one := range answers {
		a.Seconds = max(a.Seconds, one.First.Seconds())
		if one.Err == nil {
			a.Whole++
			continue
		}
		a.Failure = one.Err.Error()
	}
	return a
}

// faults lets all contenders fail at once, each on a line of its own: most of the time they wait.
func (b *run) faults(ctx context.Context) (faults []Fault, err error) {
	for _, fault := range []struct {
		name string
		do   func(ctx context.Context, name string) ([]Answer, error)
	}{
		{"the upstream accepts requests and never answers", b.hang},
		{fmt.Sprintf("the upstream cuts each answer after %d MiB, the blob has %d", cutAfter>>20, cutSize>>20), b.cuts},
		{fmt.Sprintf("the volume has %d MiB, the blob %s", fullVolume>>20, Size(fullSize)), b.full},
	} {
		f := Fault{Name: fault.name}
		if err := b.Progress.Step(ctx, fault.name, func(ctx context.Context) (err error) {
			f.Outcome, err = b.eachAtOnce(ctx, fault.do)
			if skipped := new(errSkipped); errors.As(err, skipped) {
				f = Fault{Name: fault.name, Skipped: err.Error()}
				progress.Skip(ctx, "%v", err)
				return nil
			}
			return err
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", fault.name, err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func (b *run) eachAtOnce(
	ctx context.Context, do func(ctx context.Context, name string) ([]Answer, error),
) (map[string][]Answer, error) {
	ctx, cancel := progress.Within(ctx, rowTimeout, "the fault did not finish")
	defer cancel()
	for _, size := range []int64{MB, cutSize, fullSize} { // before the contenders need them at once
		if _, err := b.blobsOf(ctx, size, 1); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	outcome := map[string][]Answer{}
	err := progress.ForEach(ctx, Contenders, func(ctx context.Context, name string) error {
		answers, err := do(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		outcome[name] = answers
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return outcome, cmp.Or(err, context.Cause(ctx)) // to a client, an interrupt is a failed download
}
