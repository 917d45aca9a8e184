//go:build e2e

package e2e

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	ungrown, grown = "10Gi", "20Gi"
)

// growVolume proves that a larger size changes nothing unless the StorageClass allows expansion,
// that no reconciliation fails in either case, and that a volume grows without a restart of its
// cache. The testbed does not resize disks, so the scenario proves only that the claim requests the
// new size.
func growVolume() rig.Scenario {
	var before string
	var img, other rig.Pushed
	plain, bigger := rig.PlainCaches(rig.Alpha, rig.Beta, rig.Gamma), rig.PlainCaches(rig.Alpha, rig.Beta, rig.Gamma)
	bigger[2].Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse(grown))}
	return rig.New("grow-volume",
		rig.Prove("gamma is cached", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			if _, there := p.Services(ctx)[rig.Gamma]; there && sizesOf(ctx, p, rig.Gamma).claim != ungrown {
				p.Reconcile(ctx, rig.Alpha, rig.Beta)
			}
			p.Configure(ctx, nil, plain...)
			img, other = p.Push(ctx, rig.Gamma), p.Push(ctx, rig.Gamma)
			for _, img := range []rig.Pushed{img, other} {
				p.TimedPull(ctx, p.Worker(0), img)
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			before = p.Identities(ctx, p.Session.Shoot)
			if sizes := sizesOf(ctx, p, rig.Gamma); sizes != (volumeSizes{ungrown, ungrown, ungrown}) {
				p.Fatalf("before the growth the sizes are %+v, want %s", sizes, ungrown)
			}
		}),

		rig.Prove("a StorageClass without expansion changes nothing", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.ReconcileConfig(ctx, p, bigger...))
			if sizes := sizesOf(ctx, p, rig.Gamma); sizes != (volumeSizes{ungrown, ungrown, grown}) {
				p.Fatalf("after the attempt the sizes are %+v, want only %s applied", sizes, grown)
			}
			p.Unchanged(ctx, p.Session.Shoot, before)
			p.TimedPull(ctx, p.Worker(1), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			p.Evidence("not allowed: Succeeded, nothing changed, still a hit")
		}),

		rig.Prove("a condition reports that the volume cannot grow", func(ctx context.Context, p *rig.Run) {
			claim := claimOf(ctx, p, rig.Gamma)
			p.AwaitCondition(ctx, gardencorev1beta1.ConditionFalse, "cache of "+rig.Gamma+": PersistentVolumeClaim "+claim.Namespace+"/"+claim.Name,
				"cannot grow from "+ungrown+" to "+grown, fmt.Sprintf("StorageClass %q", *claim.Spec.StorageClassName))
			p.Evidence("condition CachesHealthy: the claim, the upstream and the reason")
		}),

		rig.Prove("the volume grows for a StorageClass with expansion, and nothing restarts", func(ctx context.Context, p *rig.Run) {
			class := *claimOf(ctx, p, rig.Gamma).Spec.StorageClassName
			p.Afterwards(ctx, func(ctx context.Context) error { return allowExpansion(ctx, p, class, false) })
			p.Check(allowExpansion(ctx, p, class, true))
			p.Check(rig.ReconcileConfig(ctx, p, bigger...))
			if sizes := sizesOf(ctx, p, rig.Gamma); sizes != (volumeSizes{grown, ungrown, grown}) {
				p.Fatalf("after the growth the sizes are %+v, want a claim of %s", sizes, grown)
			}
			p.Unchanged(ctx, p.Session.Shoot, before)
			p.AwaitCondition(ctx, gardencorev1beta1.ConditionTrue, "")
			p.Evidence("allowed: the claim asks for %s, same StatefulSet, pod and volume, condition True", grown)
		}),

		rig.Prove("a smaller size has no effect", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx, rig.Alpha, rig.Beta, rig.Gamma)
			if sizes := sizesOf(ctx, p, rig.Gamma); sizes != (volumeSizes{grown, ungrown, ungrown}) {
				p.Fatalf("after going back the sizes are %+v, want a claim of %s", sizes, grown)
			}
			p.Unchanged(ctx, p.Session.Shoot, before)
		}),

		rig.Prove("the content of the volume is kept", func(ctx context.Context, p *rig.Run) {
			p.TimedPull(ctx, p.Worker(1), other)
			p.Evidence("still a hit: %s", p.FetchedOnce(ctx, other, accesslog.AskerCache))
		}),
	)
}

// volumeSizes contains the size of a cache's volume in its claim, in the template of its
// StatefulSet and in the Extension's state.
type volumeSizes struct{ claim, template, applied string }

func sizesOf(ctx context.Context, p *rig.Run, host string) volumeSizes {
	p.Helper()
	var sizes volumeSizes
	size := func(spec corev1.PersistentVolumeClaimSpec) string {
		request := spec.Resources.Requests[corev1.ResourceStorage]
		return request.String()
	}
	sizes.claim = size(claimOf(ctx, p, host).Spec)
	set := &appsv1.StatefulSet{}
	p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: p.Services(ctx)[host].Name}, set))
	sizes.template = size(set.Spec.VolumeClaimTemplates[0].Spec)
	applied, err := v1alpha3.DecodeState(p.Extension(ctx).Status.State)
	p.Check(err)
	for _, cache := range applied.Caches {
		if cache.Upstream == host {
			sizes.applied = cache.Volume.Size.String()
		}
	}
	return sizes
}

// claimOf returns the volume claim of a cache with one instance.
func claimOf(ctx context.Context, p *rig.Run, host string) *corev1.PersistentVolumeClaim {
	p.Helper()
	names := p.Claims(ctx, host)
	if len(names) != 1 {
		p.Fatalf("the cache of %s has the volume claims %v, want one", host, names)
	}
	claim := &corev1.PersistentVolumeClaim{}
	p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: names[0]}, claim))
	if claim.DeletionTimestamp != nil {
		p.Fatalf("the claim of %s is being deleted", host)
	}
	return claim
}

func allowExpansion(ctx context.Context, p *rig.Run, class string, allowed bool) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"allowVolumeExpansion":%t}`, allowed))
	object := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
	if err := p.Session.Shoot.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("set allowVolumeExpansion of StorageClass %s to %t: %w", class, allowed, err)
	}
	return nil
}
