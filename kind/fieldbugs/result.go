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

// The verdicts.
const (
	// Held: a user sees what the expectation says.
	Held Verdict = "held"
	// Broken: a claim does not hold, or the bug could not be reproduced.
	Broken Verdict = "broken"
	// KnownBroken: the claim that the mark names does not hold.
	KnownBroken Verdict = "known"
	// Fixed: the claim that the mark names holds. The mark must be removed.
	Fixed Verdict = "fixed"
)

// Result is what one run of a bug has shown.
type Result struct {
	ID      string  `json:"id"`
	Verdict Verdict `json:"verdict"`
	// Reason says why it is not Held; empty if it is.
	Reason   string   `json:"reason,omitempty"`
	Seconds  float64  `json:"seconds"`
	Day      string   `json:"day"`
	Commands []string `json:"commands"`
	Figures  []Figure `json:"figures,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	// Err is what the bug, or its clean-up, ended with; nil if it is Held.
	Err error `json:"-"`
}

// Figure is a time that has a bound.
type Figure struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Bound   float64 `json:"bound"`
}

// Good says whether the verdict is the one that was to be expected.
func (r *Result) Good() bool { return r.Verdict == Held || r.Verdict == KnownBroken }

// String is the verdict for people, in one line.
func (r *Result) String() string {
	text := fmt.Sprintf("%s %s", r.ID, r.Verdict)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// cleanUpTimeout bounds what comes after a bug: a machine that was lost needs minutes to come back
// on a busy host.
const cleanUpTimeout = 7 * time.Minute

// Options are what the caller of Reproduce wants to see.
type Options struct {
	// Transcript takes what was run and answered.
	Transcript io.Writer
	// Progress is told each command line of the page when it begins; nil if nobody wants to know.
	Progress func(command string)
	// OnBroken is called once when the verdict is Broken or Fixed, while the faults still hold, or
	// after a clean-up that failed; nil if nobody wants to look. Its context has not ended with the
	// bound of the bug, but it has with a signal.
	OnBroken func(ctx context.Context, reason string)
}

// onBrokenTimeout bounds what is looked at.
const onBrokenTimeout = 3 * time.Minute

func (o Options) onBroken(ctx context.Context, reason string) {
	if o.OnBroken == nil {
		return
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := progress.Within(ctx, onBrokenTimeout, "not looked at")
	defer cancel()
	o.OnBroken(ctx, reason)
}

// Reproduce applies the Shoot of the bug, reproduces it, and clears the faults. An error on the way
// is the reason of the verdict Broken.
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
	// What stays broken is no success, whatever the mark says.
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

// cleanUp clears all faults and undoes what the bug has changed beside them, the last first. Also
// after a signal.
func (r *Rig) cleanUp(ctx context.Context) error {
	ctx, cancel := progress.Within(context.WithoutCancel(ctx), cleanUpTimeout, "not cleaned up")
	defer cancel()
	_, err := r.run(ctx, []string{"fault", "clear"})
	for _, undo := range slices.Backward(r.undo) {
		err = errors.Join(err, undo(ctx))
	}
	return err
}

// judge returns the verdict on the error of a bug, given its mark, and the reason.
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
		return Broken, fmt.Sprintf("a known failure of %q failed otherwise: %v", known.Claim, err)
	}
}
