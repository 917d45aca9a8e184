package bench

import (
	"context"
	"fmt"
	"maps"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardener-extensions/registry-cache/bench/auditlog"
	"github.com/gardener-extensions/registry-cache/bench/landscape"
	"github.com/gardener-extensions/registry-cache/bench/load"
	"github.com/gardener-extensions/registry-cache/bench/report"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// passTimeout and extensionTimeout together bound one pass: so long, and so long more for each Extension.
	passTimeout      = 3 * time.Minute
	extensionTimeout = 2 * time.Second
	// brokenTimeout bounds how long a shoot that cannot be reached may take to be reported.
	brokenTimeout = 2 * time.Minute
	// The shoots that are broken.
	hanging, gone = 0, 1
	// maxBeside is how many shoots are reconciled together with those: more would take long, and show the same.
	maxBeside = 500
)

func (r *run) timeout() time.Duration {
	return passTimeout + time.Duration(r.shoots)*extensionTimeout
}

// first creates all Extensions and waits until they are reconciled.
func (r *run) first(ctx context.Context) (err error) {
	r.result.First, err = r.pass(ctx, r.shoots, landscape.IsNamespace, func(ctx context.Context, began time.Time) error {
		if err := r.landscape.CreateExtensions(ctx); err != nil {
			return err
		}
		return r.watch.AwaitReconciled(ctx, began, r.timeout(), landscape.IsNamespace, r.shoots)
	})
	return err
}

// again asks for all Extensions once more.
func (r *run) again(ctx context.Context) (err error) {
	r.result.NoOp, err = r.pass(ctx, r.shoots, landscape.IsNamespace, func(ctx context.Context, began time.Time) error {
		if err := r.landscape.Reconcile(ctx, r.shoots); err != nil {
			return err
		}
		return r.watch.AwaitReconciled(ctx, began, r.timeout(), landscape.IsNamespace, r.shoots)
	})
	return err
}

// broken breaks two shoots and asks once more for their Extensions, and for those of up to 500 other shoots; what is counted is
// about the others. Then it waits until the broken ones are reported.
func (r *run) broken(ctx context.Context) error {
	hang, err := load.Hang()
	if err != nil {
		return err
	}
	r.stop = append(r.stop, hang.Close)
	refusing, err := load.Gone()
	if err != nil {
		return err
	}
	for shoot, address := range map[int]string{hanging: hang.Address(), gone: refusing} {
		if err := r.landscape.Break(ctx, shoot, address); err != nil {
			return err
		}
	}
	isBroken := func(namespace string) bool {
		return namespace == landscape.Namespace(hanging) || namespace == landscape.Namespace(gone)
	}
	others := map[string]bool{}
	for i := range min(r.shoots, maxBeside+2) {
		if name := landscape.Namespace(i); !isBroken(name) {
			others[name] = true
		}
	}
	isOther := func(namespace string) bool { return others[namespace] }
	var began time.Time
	r.result.Broken, err = r.pass(ctx, len(others), isOther, func(ctx context.Context, at time.Time) error {
		began = at
		if err := r.landscape.Reconcile(ctx, len(others)+2); err != nil {
			return err
		}
		return r.watch.AwaitReconciled(ctx, began, r.timeout(), isOther, len(others))
	})
	if err != nil {
		return err
	}
	if err := r.watch.AwaitFailed(ctx, began, brokenTimeout, isBroken, 2); err != nil {
		return err
	}
	if hang.Accepted() == 0 {
		return fmt.Errorf("the shoot that hangs was never asked: the extension did not notice that its kubeconfig changed")
	}
	return nil
}

// pass measures what the extension does while do runs, and until it rests, for the count wanted shoots.
func (r *run) pass(
	ctx context.Context, count int, wanted func(namespace string) bool, do func(ctx context.Context, began time.Time) error,
) (report.Pass, error) {
	if err := r.rest(ctx); err != nil {
		return report.Pass{}, err
	}
	before := r.usage
	if err := do(ctx, time.Now()); err != nil {
		if ended := r.process.Running(); ended != nil {
			return report.Pass{}, ended
		}
		return report.Pass{}, err
	}
	usage, err := r.process.Usage()
	if err != nil {
		return report.Pass{}, err
	}
	seed, err := r.seedEvents.Next()
	if err != nil {
		return report.Pass{}, err
	}
	shoot, err := r.shootEvents.Next()
	if err != nil {
		return report.Pass{}, err
	}
	pass := newPass(seed, shoot, count, wanted)
	pass.CPUSeconds = (usage.CPU - before.CPU).Seconds()
	maps.Copy(r.result.Forbidden, auditlog.Count(seed).Forbidden)
	progress.Note(ctx, "%.1f ms each, %.1f requests", 1000*pass.Seconds/float64(count), pass.Seed.Total()+pass.Shoot.Total())
	return pass, nil
}

// rest waits until the extension asks for nothing more, and forgets what it asked for so far.
func (r *run) rest(ctx context.Context) (err error) {
	for _, events := range []*auditlog.Reader{r.seedEvents, r.shootEvents} {
		if err := events.AwaitQuiet(ctx); err != nil {
			return err
		}
		if _, err := events.Next(); err != nil {
			return err
		}
	}
	r.usage, err = r.process.Usage()
	return err
}

// newPass counts events of the seed and the shoots.
func newPass(seed, shoot []auditv1.Event, count int, wanted func(namespace string) bool) report.Pass {
	byShoot, others := auditlog.ByNamespace(seed, landscape.IsNamespace)
	var all []auditv1.Event
	var spans []time.Duration
	for namespace, events := range byShoot {
		if wanted(namespace) {
			all = append(all, events...)
			spans = append(spans, auditlog.Span(events))
		}
	}
	return report.Pass{
		Extensions: count,
		Seconds:    auditlog.Span(all).Seconds(),
		Extension:  report.NewLatency(spans, 0),
		Seed:       requests(all, count),
		Shoot:      requests(shoot, count),
		Unrelated:  len(others),
	}
}

// requests are means.
func requests(events []auditv1.Event, count int) report.Requests {
	tally := auditlog.Count(events)
	mean := func(n int) float64 { return float64(n) / float64(count) }
	r := report.Requests{Reads: mean(tally.Reads), Writes: mean(tally.Writes), Kinds: map[string]float64{}}
	for kind, n := range tally.Kinds {
		r.Kinds[kind] = mean(n)
	}
	return r
}
