//go:build e2e

package e2e

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// maxWakeUp bounds the time from the beginning of a wake-up until new images come through the
// caches.
const maxWakeUp = time.Minute

// hibernate proves that a shoot hibernates and wakes up with the same caches, that an unreachable
// shoot blocks no reconciliation, and that a cache works if its volume is empty after the wake-up.
func hibernate() rig.Scenario {
	images := map[string]rig.Pushed{}
	var before string
	var woken time.Time
	return rig.New("hibernate",
		rig.Prove("alpha and beta are cached", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			for _, host := range []string{rig.Alpha, rig.Beta} {
				images[host] = p.Push(ctx, host)
				p.TimedPull(ctx, p.Worker(0), images[host])
				p.FetchedOnce(ctx, images[host], accesslog.AskerCache)
			}
			before = p.Identities(ctx, p.Session.Shoot)
		}),

		rig.Prove("the shoot hibernates", func(ctx context.Context, p *rig.Run) {
			resources := p.Record(ctx, p.Session.Seed, resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources"), rig.ShootNamespace)
			hibernateShoot(ctx, p, rig.Alpha, rig.Beta)
			proveHibernated(ctx, p)
			events := rig.RaiseFence(ctx, p, resources, p.Session.Seed, rig.ResourceFence(rig.ShootNamespace))
			if event, found := rig.FirstEvent(events, rig.Named(v1alpha3.ManagedResourceCleaner)); found {
				p.Fatalf("the cleaner was deployed for machines that are deleted: %s", event.Type)
			}
			p.Evidence("hibernated, no cleaner")
		}),

		rig.Prove("it is reconciled while hibernated, although its API server is unreachable", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			hibernateShoot(ctx, p, rig.Alpha, rig.Beta)
			p.Evidence("reconciled while hibernated in %s", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("it wakes up with the same caches, one of them on a new disk", func(ctx context.Context, p *rig.Run) {
			emptyVolume(ctx, p, rig.Beta)
			woken = time.Now()
			wakeUp(ctx, p, rig.Alpha, rig.Beta)
			p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			awaitUpstreams(ctx, p, rig.Alpha, rig.Beta)
			if after := withoutKinds(p.Identities(ctx, p.Session.Shoot), "Pod "); after != withoutKinds(before, "Pod ") {
				p.Fatalf("objects of caches were recreated:\nbefore:\n%s\nafter:\n%s", before, after)
			}
			p.Evidence("woken up with the same Services and volumes after %s", rig.Seconds(time.Since(woken)))
		}),

		rig.Prove("alpha's volume still has its image", func(ctx context.Context, p *rig.Run) {
			p.TimedPull(ctx, p.Worker(1), images[rig.Alpha])
			p.Evidence("alpha still a hit: %s", p.FetchedOnce(ctx, images[rig.Alpha], accesslog.AskerCache))
		}),

		rig.Prove("beta's cache works on an empty volume", func(ctx context.Context, p *rig.Run) {
			img := p.Push(ctx, rig.Beta)
			for _, worker := range p.Workers() {
				p.TimedPull(ctx, worker, img)
			}
			took := time.Since(woken)
			if took > maxWakeUp {
				p.Fatalf("beta's cache works %s after the wake-up began, want at most %s", rig.Seconds(took), maxWakeUp)
			}
			p.Evidence("beta on an empty volume after %s: %s", rig.Seconds(took), p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),
	)
}

// hibernateShoot makes gardenlet hibernate the shoot, with these caches in its spec.
func hibernateShoot(ctx context.Context, p *rig.Run, hosts ...string) {
	p.Helper()
	shoot, err := cachetest.Shoot(hosts...)
	p.Check(err)
	hibernateUntilEnd(ctx, p, shoot)
}

// hibernateUntilEnd makes gardenlet hibernate the shoot, and wake it up after the scenario if the
// scenario has not done so.
func hibernateUntilEnd(ctx context.Context, p *rig.Run, shoot *gardencorev1beta1.Shoot) {
	p.Helper()
	p.Afterwards(ctx, func(ctx context.Context) error {
		if node, err := nodeOf(ctx, p, p.Worker(0).Name()); err == nil && health.CheckNode(node) == nil {
			return nil
		}
		return p.Session.Testbed.Gardenlet.WakeUp(ctx, shoot)
	})
	p.Check(p.Session.Testbed.Gardenlet.Hibernate(ctx, shoot))
}

// wakeUp makes gardenlet wake the shoot up, with these caches in its spec.
func wakeUp(ctx context.Context, p *rig.Run, hosts ...string) {
	p.Helper()
	shoot, err := cachetest.Shoot(hosts...)
	p.Check(err)
	p.Check(p.Session.Testbed.Gardenlet.WakeUp(ctx, shoot))
}

// proveHibernated proves that the shoot has no workers and that the Extension is Succeeded.
func proveHibernated(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, worker := range p.Workers() {
		p.Gone(ctx, p.Session.Shoot, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: worker.Name()}})
	}
	if state := rig.StateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateSucceeded {
		p.Fatalf("the Extension is %s", state)
	}
}

// emptyVolume deletes all data from the volume of a cache, as if the machine and its disk were
// lost.
func emptyVolume(ctx context.Context, p *rig.Run, host string) {
	p.Helper()
	if removed := onVolume(ctx, p, host, `find "$1" -mindepth 1 -print -delete | wc -l`); removed == "0" {
		p.Fatalf("the volume of %s was empty, so this proves nothing", host)
	}
}
