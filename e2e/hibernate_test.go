//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/timeline"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// hibernate proves that a shoot goes to sleep and wakes up with its caches: nothing of them is lost, nothing hangs because
// the shoot cannot be reached, and a cache whose volume went with its machine starts again from nothing.
func hibernate() scenario {
	images := map[string]pushed{}
	var before string
	return newScenario("hibernate",
		step{"alpha and beta are cached", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			for _, host := range []string{alpha, beta} {
				images[host] = p.Push(ctx, host)
				p.TimedPull(ctx, p.Worker(0), images[host])
				p.FetchedOnce(ctx, images[host], accesslog.AskerCache)
			}
			before = p.Identities(ctx, p.suite.shoot)
		}},
		step{"the shoot goes to sleep", func(ctx context.Context, p *scenarioRun) {
			resources := p.Record(ctx, p.suite.seed, resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources"), shootNamespace)
			p.Hibernate(ctx, alpha, beta)
			proveAsleep(ctx, p)
			events := raiseFence(ctx, p, resources, p.suite.seed, resourceFence(shootNamespace))
			if event, found := timeline.First(events, timeline.Named(cleanerManagedResource)); found {
				p.Fatalf("the cleaner was deployed for machines that go anyway: %s", event.Type)
			}
			p.Evidence("asleep, no cleaner")
		}},
		step{"it is reconciled asleep, although its API server cannot be reached", func(ctx context.Context, p *scenarioRun) {
			start := time.Now()
			p.Hibernate(ctx, alpha, beta)
			p.Evidence("reconciled asleep in %s", seconds(time.Since(start)))
		}},
		step{"it wakes up with the same caches, one of them on a new disk", func(ctx context.Context, p *scenarioRun) {
			emptyVolume(ctx, p, beta)
			start := time.Now()
			p.WakeUp(ctx, alpha, beta)
			p.AwaitCaches(ctx, alpha, beta)
			p.AwaitMirrors(ctx, alpha, beta)
			p.AwaitUpstreams(ctx, alpha, beta)
			if after := withoutPods(p.Identities(ctx, p.suite.shoot)); after != withoutPods(before) {
				p.Fatalf("objects of caches were created anew:\nbefore:\n%s\nafter:\n%s", before, after)
			}
			p.Evidence("awake with the same Services and volumes after %s", seconds(time.Since(start)))
		}},
		step{"alpha's volume still has its image", func(ctx context.Context, p *scenarioRun) {
			p.TimedPull(ctx, p.Worker(1), images[alpha])
			p.Evidence("alpha still a hit: %s", p.FetchedOnce(ctx, images[alpha], accesslog.AskerCache))
		}},
		step{"beta's cache works from nothing", func(ctx context.Context, p *scenarioRun) {
			img := p.Push(ctx, beta)
			for _, worker := range p.Workers() {
				p.TimedPull(ctx, worker, img)
			}
			p.Evidence("beta on an empty volume: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
	)
}

// Hibernate brings the shoot with these caches to sleep.
func (p *scenarioRun) Hibernate(ctx context.Context, hosts ...string) {
	p.Helper()
	shoot, err := operate.ShootWithCaches(hosts...)
	p.Check(err)
	p.Check(p.suite.testbed.Gardenlet.Hibernate(ctx, shoot))
}

// WakeUp wakes the shoot with these caches up.
func (p *scenarioRun) WakeUp(ctx context.Context, hosts ...string) {
	p.Helper()
	shoot, err := operate.ShootWithCaches(hosts...)
	p.Check(err)
	p.Check(p.suite.testbed.Gardenlet.WakeUp(ctx, shoot))
}

// proveAsleep proves that the shoot has no workers, and that the extension is content with that.
func proveAsleep(ctx context.Context, p *scenarioRun) {
	p.Helper()
	for _, worker := range p.Workers() {
		p.Gone(ctx, p.suite.shoot, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: worker.Name()}})
	}
	if state := stateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateSucceeded {
		p.Fatalf("the Extension is %s", state)
	}
}

// emptyVolume takes all data off the volume of a cache, as a machine does that is gone with its disk.
func emptyVolume(ctx context.Context, p *scenarioRun, host string) {
	p.Helper()
	service, ok := p.Services(ctx)[host]
	if !ok {
		p.Fatalf("%s has no Service", host)
	}
	for _, name := range claimsOf(ctx, p, service.Name) {
		claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		p.Check(p.suite.shoot.Get(ctx, client.ObjectKey{Namespace: service.Namespace, Name: name}, claim))
		p.Check(p.suite.shoot.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
		path := volumePath(volume)
		if path == "" {
			p.Fatalf("volume %s is not a folder of a node", volume.Name)
		}
		removed := 0
		for _, worker := range p.Workers() {
			out, err := worker.Script(ctx, `[[ -d $1 ]] || exit 0; find "$1" -mindepth 1 -print -delete | wc -l`, path)
			p.Check(err)
			var count int
			if _, err := fmt.Sscan(strings.TrimSpace(out)+" ", &count); err == nil {
				removed += count
			}
		}
		if removed == 0 {
			p.Fatalf("there was nothing in volume %s of %s: this would prove nothing", path, host)
		}
	}
}

func volumePath(volume *corev1.PersistentVolume) string {
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return source.HostPath.Path
	case source.Local != nil:
		return source.Local.Path
	default:
		return ""
	}
}
