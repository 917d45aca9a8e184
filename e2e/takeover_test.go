//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/cachetest/original"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const (
	// takeoverSlower bounds how much slower than before a pull may be while the extensions change.
	takeoverSlower = 3 * time.Second
	// pullsBefore is the number of pulls of each kind that are measured before the change.
	pullsBefore     = 20
	takeoverTimeout = 10 * time.Minute
)

// takeover is a change from the original, gardener-extension-registry-cache, to this extension. The
// original is a reconstruction, see package original.
type takeover struct {
	caches    []v1alpha3.RegistryCache
	extension original.Extension
	acting    *rig.Background // the original's controller
	installed bool            // this extension runs

	pulls     *watchedPulls
	limit     time.Duration // how long a pull may take
	reachable *reachable
	before    []string // the objects that must be kept
	left      leftover // what the original has written
}

// hosts returns the upstreams of t.caches.
func (t *takeover) hosts() []string { return rig.Upstreams(t.caches) }

// configured returns the step in which the original creates the caches.
func (t *takeover) configured() rig.Step {
	return rig.Prove("the original has configured the shoot, and workers pull through its caches", func(ctx context.Context, p *rig.Run) {
		p.Check(rig.UndoLeftovers(ctx, p))
		p.Reconcile(ctx)
		p.AwaitCaches(ctx)
		// Remove the caches: with HTTPS caches, nodes would trust the original's CA for a day.
		p.Afterwards(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p) })
		t.startOriginal(ctx, p)
		p.Check(t.reconcile(ctx, p, t.caches...))
		p.AwaitCaches(ctx, t.hosts()...)
		p.AwaitMirrors(ctx, t.hosts()...)
		t.proveOriginal(ctx, p)
		t.before = stableObjects(ctx, p)
		t.left = rememberOriginal(ctx, p)
		t.reachable = watchReachable(ctx, p)
		p.Evidence("the original is a reconstruction: its objects by ManagedResources, hosts.toml by gardener-node-agent")
	})
}

// startOriginal replaces this extension with the stand-in for the original.
func (t *takeover) startOriginal(ctx context.Context, p *rig.Run) {
	p.Helper()
	image, err := cachetest.StockImage(ctx, p.Session.Testbed)
	p.Check(err)
	t.extension = original.Extension{Seed: p.Session.Seed, Shoot: p.Session.Shoot, Image: image.Ref, Log: logr.Discard()}
	chart, err := original.Chart()
	p.Check(err)
	if !t.installed {
		p.Afterwards(ctx, func(ctx context.Context) error {
			if t.installed {
				return nil
			}
			return t.install(ctx, p)
		})
	}
	t.installed = false
	stopExtension(ctx, p)
	p.Check(cachetest.InstallStopped(ctx, p.Session.Testbed, chart))
	p.Check(t.extension.Start(ctx))
	t.acting = p.Background(ctx, func(ctx context.Context) error { return t.extension.Run(ctx, rig.ShootNamespace) })
}

// stopExtension stops this extension, and waits until none of its pods runs. Another chart takes
// away the rights that a pod needs to release its Lease.
func stopExtension(ctx context.Context, p *rig.Run) {
	p.Helper()
	p.Check(cachetest.InstallStopped(ctx, p.Session.Testbed, charts.Extension()))
	namespace := client.InNamespace(p.ExtensionNamespace(ctx))
	p.Await(ctx, "no pod of this extension runs", time.Minute, func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := p.Session.Seed.List(ctx, pods, namespace)
		return len(pods.Items) == 0, fmt.Sprintf("%d pods", len(pods.Items)), err
	})
}

// install ends the stand-in and installs this extension in its place.
func (t *takeover) install(ctx context.Context, p *rig.Run) error {
	t.acting.End()
	if err := t.extension.Stop(ctx, rig.ShootNamespace); err != nil {
		return err
	}
	if err := cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed)); err != nil {
		return err
	}
	t.installed = true
	return nil
}

// shoot returns the Shoot with these caches. Its workers have a CRI, so that gardener-node-agent
// configures the registries.
func (t *takeover) shoot(p *rig.Run, caches ...v1alpha3.RegistryCache) (*gardencorev1beta1.Shoot, error) {
	shoot, err := p.Session.ShootWith(nil, caches...)
	if err != nil {
		return nil, err
	}
	for i := range shoot.Spec.Provider.Workers {
		shoot.Spec.Provider.Workers[i].CRI = &gardencorev1beta1.CRI{Name: gardencorev1beta1.CRINameContainerD}
	}
	return shoot, nil
}

func (t *takeover) reconcile(ctx context.Context, p *rig.Run, caches ...v1alpha3.RegistryCache) error {
	shoot, err := t.shoot(p, caches...)
	if err != nil {
		return err
	}
	return p.Session.Testbed.Gardenlet.Reconcile(ctx, shoot)
}

// proveOriginal proves that the nodes have the files of gardener-node-agent and none of this
// extension.
func (t *takeover) proveOriginal(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, worker := range p.Workers() {
		for _, host := range t.hosts() {
			if content := p.Hosts(ctx, worker, host); !strings.HasPrefix(content, original.NodeAgentMark) {
				p.Errorf("hosts.toml of %s on %s is not gardener-node-agent's:\n%s", host, worker.Name(), content)
			}
		}
		provePathsAbsent(ctx, p, worker, nodeconfig.ScriptPath, nodeconfig.UnitPath)
	}
	if p.Failed() {
		p.FailNow()
	}
}

// watchPulls returns the step that measures pulls before the change.
func (t *takeover) watchPulls() rig.Step {
	return rig.Prove("each second, each worker pulls a new image and one that the cache has", func(ctx context.Context, p *rig.Run) {
		t.pulls = watchPulls(ctx, p, t.hosts()...)
		t.pulls.awaitMore(ctx, p, pullsBefore)
		slowest := t.pulls.slowest(p)
		t.limit = slowest + takeoverSlower
		p.Evidence("before: slowest pull %s", rig.Seconds(slowest))
	})
}

// swap returns the step that installs this extension. The installation alone must not change a
// cache.
func (t *takeover) swap() rig.Step {
	return rig.Prove("this extension replaces the original in place, and changes nothing yet", func(ctx context.Context, p *rig.Run) {
		untouched := p.Identities(ctx, p.Session.Shoot)
		p.Check(t.install(ctx, p))
		p.Unchanged(ctx, p.Session.Shoot, untouched)
		if t.pulls != nil {
			t.pulls.awaitMore(ctx, p, 2)
		}
	})
}

// takenOver returns the steps that reconcile the Shoot twice. The first reconciliation changes the
// nodes, and the second one the caches. So no pull waits for the pods while they restart.
func (t *takeover) takenOver() []rig.Step {
	return []rig.Step{
		rig.Prove("the next reconciliation configures the nodes, and the original's caches keep running", func(ctx context.Context, p *rig.Run) {
			running, start := p.Identities(ctx, p.Session.Shoot), time.Now()
			p.Check(t.reconcile(ctx, p, t.caches...))
			p.AwaitCaches(ctx, t.hosts()...)
			p.AwaitMirrors(ctx, t.hosts()...)
			took := time.Since(start)
			proveOurFiles(ctx, p, t.hosts()...)
			p.Unchanged(ctx, p.Session.Shoot, running)
			p.Evidence("nodes taken over in %s, with the same pods", rig.Seconds(took))
		}),
		t.changed(t.hosts()...),
	}
}

// changed returns the step in which the caches become those of this extension.
func (t *takeover) changed(hosts ...string) rig.Step {
	return rig.Prove("the reconciliation after that changes the caches, which keep volumes and addresses", func(ctx context.Context, p *rig.Run) {
		running, start := p.Identities(ctx, p.Session.Shoot), time.Now()
		p.Check(t.reconcile(ctx, p, t.only(hosts...)...))
		p.AwaitCaches(ctx, hosts...)
		p.AwaitMirrors(ctx, hosts...)
		took := time.Since(start)
		if p.Identities(ctx, p.Session.Shoot) == running {
			p.Fatalf("no pod was replaced: the caches are still those of the original")
		}
		t.proveKept(ctx, p)
		p.Evidence("caches taken over in %s: StatefulSets, claims, volumes and Services have the same UIDs", rig.Seconds(took))
	})
}

// only returns the caches of these upstreams.
func (t *takeover) only(hosts ...string) []v1alpha3.RegistryCache {
	return slices.DeleteFunc(slices.Clone(t.caches), func(c v1alpha3.RegistryCache) bool { return !slices.Contains(hosts, c.Upstream) })
}

// settled returns the steps that, after a change, check pulls, policies and what is left of the
// original.
func (t *takeover) settled(remaining ...string) []rig.Step {
	return []rig.Step{
		rig.Prove("no pull failed, and none was much slower than before", func(ctx context.Context, p *rig.Run) {
			t.pulls.awaitMore(ctx, p, 5)
			t.pulls.end(p, t.limit)
		}),
		rig.Prove("NetworkPolicies let nodes reach each cache at all times", func(_ context.Context, p *rig.Run) { t.reachable.prove(p, remaining...) }),
		t.nothingLeft(remaining...),
	}
}

// nothingLeft returns the step that proves that, one reconciliation later, nothing is left of the
// original, and that this reconciliation changes no cache.
func (t *takeover) nothingLeft(remaining ...string) rig.Step {
	return rig.Prove("after one more reconciliation nothing of the original is left", func(ctx context.Context, p *rig.Run) {
		before, err := rig.CacheObjects(ctx, p.Session.Shoot)
		p.Check(err)
		p.Check(t.reconcile(ctx, p, t.only(remaining...)...))
		p.AwaitCaches(ctx, remaining...)
		p.AwaitMirrors(ctx, remaining...)
		after, err := rig.CacheObjects(ctx, p.Session.Shoot)
		p.Check(err)
		if after != before {
			p.Fatalf("this reconciliation changed objects of caches:\nbefore:\n%s\nafter:\n%s", before, after)
		}
		t.left.proveGone(ctx, p)
		proveNoOriginalFiles(ctx, p)
		p.Evidence("nothing of the original left in seed, shoot and on %d workers", len(p.Workers()))
	})
}

// stableObjects returns what must survive a takeover: all objects of caches except pods, with their
// UIDs, and the volumes and addresses.
func stableObjects(ctx context.Context, p *rig.Run) []string {
	p.Helper()
	lines := strings.Split(withoutKinds(p.Identities(ctx, p.Session.Shoot), "Pod "), "\n")
	claims := &corev1.PersistentVolumeClaimList{}
	p.Check(p.Session.Shoot.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	for _, claim := range claims.Items {
		lines = append(lines, fmt.Sprintf("claim %s %s on volume %s", claim.Name, claim.UID, claim.Spec.VolumeName))
	}
	for _, service := range p.Services(ctx) {
		lines = append(lines, "address of "+service.Name+" "+service.Spec.ClusterIP)
	}
	slices.Sort(lines)
	return lines
}

// proveKept proves that all objects in before are still there. Others may be new.
func (t *takeover) proveKept(ctx context.Context, p *rig.Run) {
	p.Helper()
	now := stableObjects(ctx, p)
	for _, line := range t.before {
		if !slices.Contains(now, line) {
			p.Errorf("not kept: %s; there is now:\n%s", line, strings.Join(now, "\n"))
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}

// proveOurFiles proves that each worker has this extension's hosts.toml for the upstreams.
func proveOurFiles(ctx context.Context, p *rig.Run, hosts ...string) {
	p.Helper()
	for _, worker := range p.Workers() {
		for _, host := range hosts {
			if content := p.Hosts(ctx, worker, host); !strings.Contains(content, nodeconfig.Marker) {
				p.Errorf("hosts.toml of %s on %s is not this extension's:\n%s", host, worker.Name(), content)
			}
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}

// proveNoOriginalFiles proves that no worker has a file of the original.
func proveNoOriginalFiles(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, worker := range p.Workers() {
		provePathsAbsent(ctx, p, worker, original.BundlePath)
		found, err := worker.Script(ctx, `grep -rlF -- "$1" "$2" || true`, original.NodeAgentMark, nodeconfig.CertsDir)
		p.Check(err)
		if found = strings.TrimSpace(found); found != "" {
			p.Errorf("%s still has files of gardener-node-agent: %s", worker.Name(), found)
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}
