package extension

import (
	"context"
	"errors"
	"maps"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// The timeout of one pass is passTimeout plus extensionTimeout for each shoot.
	passTimeout      = 3 * time.Minute
	extensionTimeout = 2 * time.Second
	// brokenTimeout bounds the time until the extension reports an unreachable shoot. For two minutes
	// it reports that it waits, and the attempt after that may come 80 s later.
	brokenTimeout = 4 * time.Minute
	// hanging and refusing are the indices of the two broken shoots.
	hanging, refusing = 0, 1
	// maxOthers limits how many other shoots are reconciled together with the broken ones. More
	// shoots would take longer and give the same result.
	maxOthers = 500
)

func (r *measurement) wanted(is func(namespace string) bool, count int) Wanted {
	return Wanted{Is: is, Count: count, Timeout: passTimeout + time.Duration(r.shoots)*extensionTimeout}
}

func (r *measurement) first(ctx context.Context) (err error) {
	r.result.First, err = r.pass(ctx, r.wanted(isShoot, r.shoots), r.landscape.CreateExtensions)
	return err
}

func (r *measurement) again(ctx context.Context) (err error) {
	r.result.NoOp, err = r.pass(ctx, r.wanted(isShoot, r.shoots), func(ctx context.Context) error {
		return r.landscape.Reconcile(ctx, r.shoots)
	})
	return err
}

// breakTwo breaks two shoots and reconciles them together with up to maxOthers other shoots, but
// measures only the others. Then it waits until the extension reports errors of the broken shoots.
func (r *measurement) breakTwo(ctx context.Context) error {
	hang, refused, err := Unreachable()
	if err != nil {
		return err
	}
	r.stop = append(r.stop, hang.Close)
	for shoot, address := range map[int]string{hanging: hang.Addr().String(), refusing: refused} {
		if err := r.landscape.Break(ctx, shoot, address); err != nil {
			return err
		}
	}
	isBroken := func(namespace string) bool {
		return namespace == namespaceOf(hanging) || namespace == namespaceOf(refusing)
	}
	others := map[string]bool{}
	for i := range min(r.shoots, maxOthers+2) {
		if name := namespaceOf(i); !isBroken(name) {
			others[name] = true
		}
	}
	isOther := func(namespace string) bool { return others[namespace] }
	began := time.Now()
	r.result.Broken, err = r.pass(ctx, r.wanted(isOther, len(others)), func(ctx context.Context) error {
		return r.landscape.Reconcile(ctx, len(others)+2)
	})
	if err != nil {
		return err
	}
	err = r.watch.AwaitFailed(ctx, began, Wanted{Is: isBroken, Count: 2, Timeout: brokenTimeout})
	if err == nil && !Connected(hang) {
		err = errors.New("the extension made no request to the hanging shoot, so it does not use the new kubeconfig")
	}
	return err
}

// pass calls trigger and measures the extension until the wanted shoots are reconciled.
func (r *measurement) pass(ctx context.Context, wanted Wanted, trigger func(context.Context) error) (Pass, error) {
	if err := r.awaitIdle(ctx); err != nil {
		return Pass{}, err
	}
	before, began := r.usage, time.Now()
	err := trigger(ctx)
	if err == nil {
		err = r.watch.AwaitReconciled(ctx, began, wanted)
	}
	if err != nil {
		if ended := r.process.Running(); ended != nil {
			return Pass{}, ended
		}
		return Pass{}, err
	}
	usage, usageErr := r.process.Usage()
	seed, seedErr := r.seed.Audit.Next()
	shoot, shootErr := r.shoot.Audit.Next()
	if err := errors.Join(usageErr, seedErr, shootErr); err != nil {
		return Pass{}, err
	}
	pass := newPass(seed, shoot, wanted)
	pass.CPUSeconds = (usage.CPU - before.CPU).Seconds()
	maps.Copy(r.result.Forbidden, bench.Count(seed).Forbidden)
	progress.Note(ctx, "%.1f ms each, %.1f requests", 1000*pass.Seconds/float64(wanted.Count), pass.Seed.Total()+pass.Shoot.Total())
	return pass, nil
}

// awaitIdle waits until the extension is idle, discards the audit events, and reads its usage.
func (r *measurement) awaitIdle(ctx context.Context) (err error) {
	for _, server := range []*bench.ControlPlane{r.seed, r.shoot} {
		if err := server.Audit.AwaitQuiet(ctx); err != nil {
			return err
		}
		if _, err := server.Audit.Next(); err != nil {
			return err
		}
	}
	r.usage, err = r.process.Usage()
	return err
}

func newPass(seed, shoot []auditv1.Event, wanted Wanted) Pass {
	byShoot, others := bench.ByNamespace(seed, isShoot)
	var all []auditv1.Event
	var spans []time.Duration
	for namespace, events := range byShoot {
		if wanted.Is(namespace) {
			all = append(all, events...)
			spans = append(spans, bench.Span(events))
		}
	}
	return Pass{
		Extensions: wanted.Count,
		Seconds:    bench.Span(all).Seconds(),
		Extension:  newLatency(spans, 0),
		Seed:       requests(all, wanted.Count),
		Shoot:      requests(shoot, wanted.Count),
		Unrelated:  len(others),
	}
}

// requests returns the mean numbers of requests per Extension.
func requests(events []auditv1.Event, count int) Requests {
	tally := bench.Count(events)
	mean := func(n int) float64 { return float64(n) / float64(count) }
	r := Requests{Reads: mean(tally.Reads), Writes: mean(tally.Writes), Kinds: map[string]float64{}}
	for kind, n := range tally.Kinds {
		r.Kinds[kind] = mean(n)
	}
	return r
}
