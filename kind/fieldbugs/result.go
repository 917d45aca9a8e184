package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Verdict is the result of a bug.
type Verdict string

const (
	// Held means that the expectation holds.
	Held Verdict = "held"
	// Broken means that a claim does not hold, or that the bug could not be reproduced.
	Broken Verdict = "broken"
	// KnownBroken means that the claim that Known marks as failing does not hold, as expected.
	KnownBroken Verdict = "known"
	// Fixed means that the claim that Known marks as failing now holds. Known must be removed.
	Fixed Verdict = "fixed"
)

// Result is the result of one run of a bug.
type Result struct {
	ID      string  `json:"id"`
	Verdict Verdict `json:"verdict"`
	// Reason is why the verdict is not Held.
	Reason   string   `json:"reason,omitempty"`
	Seconds  float64  `json:"seconds"`
	Day      string   `json:"day"`
	Commands []string `json:"commands"`
	Figures  []Figure `json:"figures,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	// Err is the error of the bug or of its clean-up.
	Err error `json:"-"`
}

// Figure is a measured time and its bound.
type Figure struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Bound   float64 `json:"bound"`
}

// Good reports whether the verdict is the expected one.
func (r *Result) Good() bool { return r.Verdict == Held || r.Verdict == KnownBroken }

// String returns the verdict and its reason in one line.
func (r *Result) String() string {
	text := fmt.Sprintf("%s %s", r.ID, r.Verdict)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// cleanUpTimeout bounds the clean-up. On a busy host a lost machine takes minutes to rejoin.
const cleanUpTimeout = 7 * time.Minute

// Options are the outputs of Reproduce.
type Options struct {
	// Transcript receives all commands and their output.
	Transcript io.Writer
	// Progress, if not nil, is called with each command before it runs.
	Progress func(command string)
	// OnBroken, if not nil, is called at most once: for the verdict Broken or Fixed before the faults
	// are deleted, or else after a failed clean-up. A signal ends its ctx, Bug.Bound does not.
	OnBroken func(ctx context.Context, reason string)
}

const onBrokenTimeout = 3 * time.Minute

func (o Options) onBroken(ctx context.Context, reason string) {
	if o.OnBroken == nil {
		return
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := progress.Within(ctx, onBrokenTimeout, "diagnostics not collected")
	defer cancel()
	o.OnBroken(ctx, reason)
}

// Reproduce applies the Shoot of the bug, runs its steps, and deletes the faults. Every error gives
// the verdict Broken, except an *Unmet for the claim that Known names.
func Reproduce(ctx context.Context, bug Bug, execute Execute, options Options) *Result {
	start := time.Now()
	result := &Result{ID: bug.ID, Day: start.UTC().Format(time.DateOnly)}
	rig := &Rig{execute: execute, transcript: options.Transcript, progress: options.Progress, result: result}
	err := rig.reproduce(ctx, bug)
	result.Commands = rig.script.commands()
	result.Verdict, result.Reason = judge(bug.Known, err)
	looked := !result.Good()
	if looked {
		options.onBroken(ctx, result.Reason)
	}
	// A failed clean-up is a failure, even of a bug with a Known mark.
	if left := rig.cleanUp(ctx); left != nil {
		err = errors.Join(err, fmt.Errorf("afterwards: %w", left))
		result.Verdict, result.Reason = Broken, err.Error()
		if !looked {
			options.onBroken(ctx, result.Reason)
		}
	}
	result.Err = err
	result.Seconds = time.Since(start).Seconds()
	return result
}

func (r *Rig) reproduce(ctx context.Context, bug Bug) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bug.bound(), fmt.Errorf("%s took longer than %s", bug.ID, bug.bound()))
	defer cancel()
	if err := r.begin(ctx, bug); err != nil {
		return err
	}
	return bug.Reproduce(ctx, r)
}

// cleanUp deletes all faults and reverts the other changes of the bug, the last change first, even
// after a signal.
func (r *Rig) cleanUp(ctx context.Context) error {
	ctx, cancel := progress.Within(context.WithoutCancel(ctx), cleanUpTimeout, "not cleaned up")
	defer cancel()
	_, err := r.run(ctx, []string{"fault", "delete"})
	for _, undo := range slices.Backward(r.undo) {
		err = errors.Join(err, undo(ctx))
	}
	return err
}

func judge(known *Known, err error) (Verdict, string) {
	var unmet *Unmet
	switch {
	case known == nil && err == nil:
		return Held, ""
	case known == nil:
		return Broken, err.Error()
	case err == nil:
		return Fixed, fmt.Sprintf("%q holds: remove the mark (%s)", known.Claim, known.Because)
	case errors.As(err, &unmet) && unmet.Claim == known.Claim:
		return KnownBroken, fmt.Sprintf("%v (%s)", unmet, known.Because)
	default:
		return Broken, fmt.Sprintf("want the known failure of %q, got another one: %v", known.Claim, err)
	}
}
