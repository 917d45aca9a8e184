package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// The timeout of one pass is passTimeout plus extensionTimeout for each shoot.
	passTimeout      = 3 * time.Minute
	extensionTimeout = 2 * time.Second
	hangTimeout      = 30 * time.Second // until the extension connects to the API server that hangs
	// maxShoots limits how many shoots are reconciled while two are broken. More would take longer and
	// give the same result.
	maxShoots = 500
)

// breakTwo makes the API server of the first shoot hang and that of the second refuse connections,
// reconciles both together with others, and measures the others.
func (r *measurement) breakTwo(ctx context.Context) error {
	hanging, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}) // the kernel accepts connections
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	r.stop = append(r.stop, hanging.Close)
	broken := []string{hanging.Addr().String(), "127.0.0.1:1"} // nothing listens on port 1
	for i, address := range broken {
		if err := r.pointTo(ctx, i, address); err != nil {
			return err
		}
	}
	all := min(r.result.Shoots, maxShoots)
	err = r.pass(ctx, &r.result.Broken, namespaces(len(broken), all), func(ctx context.Context) error { return r.reconcile(ctx, all) })
	if err == nil {
		err = hanging.SetDeadline(time.Now().Add(hangTimeout))
	}
	if err != nil {
		return err
	}
	connection, err := hanging.Accept()
	if err != nil {
		return fmt.Errorf("the extension made no request to the hanging shoot, so it does not use the new kubeconfig: %w", err)
	}
	return connection.Close()
}

// pass calls trigger and measures the extension until the wanted shoots are reconciled.
func (r *measurement) pass(ctx context.Context, result *Pass, wanted map[string]bool, trigger func(context.Context) error) error {
	before, err := r.awaitIdle(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err = trigger(ctx); err == nil {
		err = awaitReconciled(ctx, r.extensions, began, wanted, passTimeout+time.Duration(r.result.Shoots)*extensionTimeout)
	}
	if err != nil {
		return cmp.Or(r.process.Running(), err)
	}
	usage, usageErr := r.process.Usage()
	seed, seedErr := r.seed.Audit.Next()
	shoot, shootErr := r.shoot.Audit.Next()
	if err := errors.Join(usageErr, seedErr, shootErr); err != nil {
		return err
	}
	_, forbidden := bench.Count(seed)
	maps.Copy(r.result.Forbidden, forbidden)
	*result = newPass(seed, shoot, wanted, usage.CPU-before.CPU)
	progress.Note(ctx, "%.1f ms each, %.1f requests", 1000*result.Seconds, result.total())
	return nil
}

// awaitIdle waits until the extension is idle, discards the events, and returns the usage.
func (r *measurement) awaitIdle(ctx context.Context) (bench.Usage, error) {
	if err := errors.Join(r.seed.Audit.Drain(ctx), r.shoot.Audit.Drain(ctx)); err != nil {
		return bench.Usage{}, err
	}
	return r.process.Usage()
}

// newPass returns the means per wanted shoot.
func newPass(seed, shoot []auditv1.Event, wanted map[string]bool, cpu time.Duration) Pass {
	seed = slices.DeleteFunc(seed, func(event auditv1.Event) bool {
		ref := event.ObjectRef
		return ref == nil || !wanted[ref.Namespace] && !wanted[ref.Name] // a Cluster has the name of the namespace
	})
	n := float64(len(wanted))
	pass := Pass{Seconds: bench.Span(seed).Seconds() / n, CPU: cpu.Seconds() / n, Requests: map[string]float64{}}
	for server, events := range map[string][]auditv1.Event{"seed: ": seed, "shoot: ": shoot} {
		all, _ := bench.Count(events)
		for kind, count := range all {
			pass.Requests[server+kind] = float64(count) / n
		}
	}
	return pass
}
