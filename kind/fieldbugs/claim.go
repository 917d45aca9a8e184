package fieldbugs

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// Unmet is a claim that does not hold.
type Unmet struct {
	Claim, Seen string
}

func (e *Unmet) Error() string { return e.Claim + ": no: " + e.Seen }

// Require adds what was seen to the evidence if the claim holds, and returns an *Unmet if not. The
// claim must have the same text in each run, because Known.Claim is compared with it.
func (r *Rig) Require(claim string, holds bool, seen string, args ...any) error {
	text := fmt.Sprintf(seen, args...)
	if !holds {
		return &Unmet{Claim: claim, Seen: text}
	}
	r.result.Evidence = append(r.result.Evidence, claim+": "+text)
	return nil
}

// Within requires that the duration is at most the bound, and adds it to the figures of
// docs/field-bugs.md.
func (r *Rig) Within(claim string, took, bound time.Duration) error {
	r.result.Figures = append(r.result.Figures, Figure{Name: claim, Seconds: took.Seconds(), Bound: bound.Seconds()})
	return r.Require(claim, took <= bound, "%.1f s, at most %.1f s wanted", took.Seconds(), bound.Seconds())
}

// Soon waits until the claim holds, and checks the time like Within.
func (r *Rig) Soon(ctx context.Context, claim string, bound time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) error {
	start := time.Now()
	if err := r.Await(ctx, claim, bound, done); err != nil {
		return r.awaited(ctx, claim, err)
	}
	return r.Within(claim, time.Since(start), bound)
}

// awaited turns the timeout of an Await into an *Unmet. It returns other errors unchanged,
// including the error of a bug that exceeds Bug.Bound.
func (r *Rig) awaited(ctx context.Context, claim string, err error) error {
	if ctx.Err() != nil || !wait.Interrupted(err) {
		return err
	}
	return r.Require(claim, false, "%v", err)
}

// Succeeded requires that all pulls of the report succeeded.
func (r *Rig) Succeeded(claim string, report *pull.Report) error {
	if err := report.Err(); err != nil {
		return r.Require(claim, false, "%v", err)
	}
	return r.Require(claim, true, "%d of %d pulls", report.Total.Pulls-report.Total.Failed, report.Total.Pulls)
}

// requirePull is like Pull, but requires that all pulls succeed.
func (r *Rig) requirePull(ctx context.Context, reference, claim string, flags ...string) (*pull.Report, error) {
	report, err := r.Pull(ctx, reference, flags...)
	if err != nil {
		return report, err
	}
	return report, r.Succeeded(claim, report)
}

// Slowest returns the duration of the slowest pull of the report.
func Slowest(report *pull.Report) time.Duration {
	return time.Duration(report.Total.Slowest * float64(time.Second))
}

// BlobsBy counts the configs and layers that a source served in all pulls.
func BlobsBy(report *pull.Report, source pull.Source) int {
	count := 0
	for _, p := range report.Pulls {
		for _, object := range p.Objects {
			if object.By == source && object.Part != pull.PartManifest && object.Part != pull.PartIndex {
				count++
			}
		}
	}
	return count
}
