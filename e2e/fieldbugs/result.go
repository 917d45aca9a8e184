package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Verdict is what came of a bug.
type Verdict string

// The verdicts.
const (
	// Held: a user sees what the expectation says.
	Held Verdict = "held"
	// Broken: a claim does not hold, or the bug could not be reproduced.
	Broken Verdict = "broken"
	// KnownBroken: the claim that the mark names does not hold.
	KnownBroken Verdict = "known"
	// Mended: the claim that the mark names holds. The mark has to be taken off.
	Mended Verdict = "mended"
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

// cleanUpTimeout bounds what comes after a bug: a machine that was lost needs minutes to come back on a busy host.
const cleanUpTimeout = 7 * time.Minute

// begunTimeout is what nodes may need to hear of the caches that a bug begins with.
const begunTimeout = time.Minute

// Options are for who reproduces a bug.
type Options struct {
	// Transcript takes what was run and answered.
	Transcript io.Writer
	// OnBroken is called when the verdict is Broken or Mended, while the faults still hold; nil if nobody wants to look.
	OnBroken func(ctx context.Context, reason string)
}

// Reproduce brings the Shoot of the bug about, reproduces it, and clears the faults. It returns what came of it; an error of the
// way there is the reason of a Broken.
func Reproduce(ctx context.Context, bug Bug, execute Execute, options Options) *Result {
	start := time.Now()
	result := &Result{ID: bug.ID, Day: start.UTC().Format(time.DateOnly)}
	rig := &Rig{execute: execute, transcript: options.Transcript, result: result}
	bounded, cancel := context.WithTimeoutCause(ctx, bug.bound(), fmt.Errorf("%s took longer than %s", bug.ID, bug.bound()))
	defer cancel()
	err := rig.begin(bounded, bug)
	if err == nil {
		err = bug.Reproduce(bounded, rig)
	}
	commands := len(result.Commands)
	result.Verdict, result.Reason = judge(bug.Known, err)
	if options.OnBroken != nil && !result.Good() {
		options.OnBroken(ctx, result.Reason)
	}
	// What stays broken is no success, whatever the mark says.
	if left := rig.cleanUp(ctx); left != nil {
		err = errors.Join(err, fmt.Errorf("afterwards: %w", left))
		result.Verdict, result.Reason = Broken, err.Error()
	}
	result.Err = err
	result.Commands = result.Commands[:commands]
	result.Seconds = time.Since(start).Seconds()
	return result
}

// cleanUp clears all faults and undoes what the bug has changed beside them, the last first. Also after a signal.
func (r *Rig) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cleanUpTimeout, fmt.Errorf("not cleaned up in %s", cleanUpTimeout))
	defer cancel()
	err := r.Mend(ctx)
	for _, undo := range slices.Backward(r.undo) {
		err = errors.Join(err, undo(ctx))
	}
	return err
}

// begin makes the state that a bug starts from.
func (r *Rig) begin(ctx context.Context, bug Bug) error {
	if err := r.Mend(ctx); err != nil {
		return err
	}
	r.result.Commands = nil // on a testbed that has just come up there is nothing to clear
	if err := r.Apply(ctx, bug.shoot()); err != nil {
		return err
	}
	return r.awaitMirrors(ctx, "alpha", begunTimeout, func(address string) bool { return address != "" })
}

// judge weighs what came of a bug against its mark.
func judge(known *Known, err error) (Verdict, string) {
	var unmet *Unmet
	switch {
	case known == nil && err == nil:
		return Held, ""
	case known == nil:
		return Broken, err.Error()
	case err == nil:
		return Mended, fmt.Sprintf("%q holds: take the mark off (%s)", known.Claim, known.Because)
	case errors.As(err, &unmet) && unmet.Claim == known.Claim:
		return KnownBroken, fmt.Sprintf("%v (%s)", unmet, known.Because)
	default:
		return Broken, fmt.Sprintf("a known failure of %q failed otherwise: %v", known.Claim, err)
	}
}
