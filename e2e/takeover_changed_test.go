//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// takeoverRemoval proves that the first reconciliation of this extension can also remove a cache:
// the cleaner removes the hosts.toml of gardener-node-agent from nodes before the cache is deleted.
// gardener-node-agent, which is stopped here, would remove it up to five minutes later.
func takeoverRemoval() rig.Scenario {
	t := &takeover{caches: rig.PlainCaches(rig.Alpha, rig.Beta)}
	return rig.New("takeover-removal", slices.Concat([]rig.Step{
		t.configured(), t.watchPulls(), t.swap(),
		rig.Prove("the next reconciliation removes beta after the nodes have been cleaned", func(ctx context.Context, p *rig.Run) {
			kept := podOf(ctx, p, rig.Alpha).UID
			t.removeWith(ctx, p, rig.Beta)
			p.AwaitCaches(ctx, rig.Alpha)
			p.AwaitMirrors(ctx, rig.Alpha)
			proveOurFiles(ctx, p, rig.Alpha)
			if pod := podOf(ctx, p, rig.Alpha); pod.UID != kept {
				p.Fatalf("the pod %s of the cache that stays was replaced", pod.Name)
			}
		}),
		t.changed(rig.Alpha),
	}, t.settled(rig.Alpha))...).Within(takeoverTimeout)
}

// removeWith reconciles the Shoot without the upstreams, and proves that the nodes are cleaned
// before the Services are deleted, while gardener-node-agent is stopped.
func (t *takeover) removeWith(ctx context.Context, p *rig.Run, removed ...string) {
	p.Helper()
	order, release := watchCleaning(ctx, p, removed...), p.HoldNodeAgents(ctx)
	for _, host := range removed {
		name := p.Services(ctx)[host].Name
		t.before = slices.DeleteFunc(t.before, func(line string) bool { return strings.Contains(line, name) })
	}
	remaining := t.only(slices.DeleteFunc(t.hosts(), func(host string) bool { return slices.Contains(removed, host) })...)
	flow := p.Background(ctx, func(ctx context.Context) error { return t.reconcile(ctx, p, remaining...) })
	order.awaitVanished(ctx, p, flow)
	for _, worker := range p.Workers() {
		for _, host := range removed {
			provePathsAbsent(ctx, p, worker, rig.HostsPath(host))
		}
	}
	p.Check(release(ctx))
	p.Join(ctx, flow, rig.Reconciled(rig.Upstreams(remaining)...), rig.ReconcileTimeout)
	order.proveOrder(ctx, p)
	order.proveClaimsGone(ctx, p)
}

// takeoverDisabled proves that the extension can be disabled right after the swap, before this
// extension has reconciled the Shoot even once.
func takeoverDisabled() rig.Scenario {
	t := &takeover{caches: rig.PlainCaches(rig.Beta)}
	return rig.New("takeover-disabled",
		t.configured(), t.watchPulls(), t.swap(),
		rig.Prove("the extension is disabled, and the nodes are cleaned before the caches are deleted", func(ctx context.Context, p *rig.Run) {
			t.removeWith(ctx, p, rig.Beta)
			p.AwaitCaches(ctx)
			awaitNothingOnWorkers(ctx, p)
			p.NoCleanerLeft(ctx)
		}),
		rig.Prove("no pull failed, and none was much slower than before", func(ctx context.Context, p *rig.Run) {
			t.pulls.awaitMore(ctx, p, 5)
			t.pulls.end(p, t.limit)
		}),
		rig.Prove("nothing of the original is left", func(ctx context.Context, p *rig.Run) {
			t.left.proveGone(ctx, p)
			proveNoOriginalFiles(ctx, p)
			p.Evidence("disabled before the first reconciliation: nothing left")
		}),
	).Within(takeoverTimeout)
}

// takeoverHibernated proves that the original can be replaced while the Shoot is hibernated.
func takeoverHibernated() rig.Scenario {
	t := &takeover{caches: rig.PlainCaches(rig.Beta)}
	var img rig.Pushed
	return rig.New("takeover-hibernated",
		t.configured(),
		rig.Prove("an image is in the cache, and the shoot hibernates with the original", func(ctx context.Context, p *rig.Run) {
			img = p.Push(ctx, rig.Beta)
			p.TimedPull(ctx, p.Worker(0), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			t.hibernate(ctx, p)
			proveHibernated(ctx, p)
		}),
		rig.Prove("this extension replaces the original, and is reconciled while hibernated", func(ctx context.Context, p *rig.Run) {
			p.Check(t.install(ctx, p))
			t.hibernate(ctx, p)
			proveHibernated(ctx, p)
		}),
		rig.Prove("the shoot wakes up with its volumes and addresses", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			shoot, err := t.shoot(p, t.caches...)
			p.Check(err)
			p.Check(p.Session.Testbed.Gardenlet.WakeUp(ctx, shoot))
			p.AwaitCaches(ctx, t.hosts()...)
			p.AwaitMirrors(ctx, t.hosts()...)
			awaitUpstreams(ctx, p, t.hosts()...)
			proveOurFiles(ctx, p, t.hosts()...)
			t.proveKept(ctx, p)
			p.Evidence("woken up with the same StatefulSets, claims, volumes and Services after %s", rig.Seconds(time.Since(start)))
		}),
		rig.Prove("the image is still a hit", func(ctx context.Context, p *rig.Run) {
			p.TimedPull(ctx, p.Worker(1), img)
			p.Evidence("still a hit: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),
		t.nothingLeft(t.hosts()...),
	).Within(takeoverTimeout)
}

func (t *takeover) hibernate(ctx context.Context, p *rig.Run) {
	p.Helper()
	shoot, err := t.shoot(p, t.caches...)
	p.Check(err)
	rig.CollectGarbage(ctx, p)
	hibernateUntilEnd(ctx, p, shoot)
}
