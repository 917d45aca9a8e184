//go:build e2e

package nodeless

import (
	"context"
	"fmt"
	"maps"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// growVolume proves, with a real API server and a real gardener-resource-manager, when a claim
// grows, what the condition reports, and that the StatefulSet is not recreated. Nothing provisions
// claims here, so the scenario binds them itself.
func growVolume() rig.Scenario {
	const claim = "cache of " + rig.Alpha + ": PersistentVolumeClaim "
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "e2e-disk"}, Provisioner: "none.test"}
	var set *appsv1.StatefulSet
	cache := func(size string, replicated bool) v1alpha3.RegistryCache {
		c := cachetest.Cache(rig.Alpha)
		c.Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse(size)), StorageClassName: &class.Name}
		c.HighAvailability = &v1alpha3.HighAvailability{Enabled: replicated}
		return c
	}
	return rig.New("grow-volume",
		rig.Prove("the condition names a claim that is not bound", func(ctx context.Context, p *rig.Run) {
			p.Afterwards(ctx, func(ctx context.Context) error { return p.Session.Shoot.Delete(ctx, class) })
			p.Check(p.Session.Shoot.Create(ctx, class.DeepCopy()))
			configure(ctx, p, nil, cache("10Gi", false))
			p.AwaitCondition(ctx, gardencorev1beta1.ConditionProgressing, claim, "-0 is not bound (Pending)", class.Name, "is not ready")
			set = setOf(ctx, p)
		}),

		rig.Prove("no reconciliation fails if the API server refuses to let a claim grow", func(ctx context.Context, p *rig.Run) {
			bind(ctx, p)
			configure(ctx, p, nil, cache("20Gi", false))
			awaitSizes(ctx, p, map[string]string{"0": "10Gi"})
			p.AwaitCondition(ctx, gardencorev1beta1.ConditionFalse, claim, "cannot grow from 10Gi to 20Gi", "must support resize", class.Name)
			p.Evidence("refused by the API server: Succeeded, and a condition")
		}),

		rig.Prove("the claim grows once that is allowed, and the StatefulSet is not recreated", func(ctx context.Context, p *rig.Run) {
			p.Check(p.Session.Shoot.Patch(ctx, class.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"allowVolumeExpansion":true}`))))
			configure(ctx, p, nil, cache("20Gi", false))
			awaitSizes(ctx, p, map[string]string{"0": "20Gi"})
			p.AwaitCondition(ctx, gardencorev1beta1.ConditionFalse, "cache of "+rig.Alpha+": pod ", "is not ready")
			if now := setOf(ctx, p); now.UID != set.UID {
				p.Fatalf("the StatefulSet was recreated")
			}
			p.Evidence("allowed: 20Gi, same StatefulSet")
		}),

		rig.Prove("the claim of a second replica grows, and is deleted with the replica", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, nil, cache("20Gi", true))
			awaitSizes(ctx, p, map[string]string{"0": "20Gi", "1": "10Gi"})
			bind(ctx, p)
			configure(ctx, p, nil, cache("20Gi", true))
			awaitSizes(ctx, p, map[string]string{"0": "20Gi", "1": "20Gi"})
			configure(ctx, p, nil, cache("5Gi", false))
			awaitSizes(ctx, p, map[string]string{"0": "20Gi"})
			p.Evidence("a second replica: its claim grows, and is deleted with the replica; a smaller size: no effect")
		}),
	)
}

func setOf(ctx context.Context, p *rig.Run) *appsv1.StatefulSet {
	p.Helper()
	sets := &appsv1.StatefulSetList{}
	p.Check(p.Session.Shoot.List(ctx, sets, ofAlpha...))
	if len(sets.Items) != 1 {
		p.Fatalf("there are %d StatefulSets, want one", len(sets.Items))
	}
	return &sets.Items[0]
}

var ofAlpha = []client.ListOption{client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1alpha3.LabelUpstreamHost: rig.Alpha}}

// bind sets the status of alpha's claims to Bound, as the controller that binds claims would.
func bind(ctx context.Context, p *rig.Run) {
	p.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	p.Check(p.Session.Shoot.List(ctx, claims, ofAlpha...))
	for _, claim := range claims.Items {
		p.Check(p.Session.Shoot.Status().Patch(ctx, &claim, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Bound"}}`))))
	}
}

// awaitSizes waits until the claims of the cache request these sizes, by ordinal.
func awaitSizes(ctx context.Context, p *rig.Run, want map[string]string) {
	p.Helper()
	p.Await(ctx, "the claims have their sizes", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		claims, sizes := &corev1.PersistentVolumeClaimList{}, map[string]string{}
		err := p.Session.Shoot.List(ctx, claims, ofAlpha...)
		for _, claim := range claims.Items {
			size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
			sizes[claim.Name[len(claim.Name)-1:]] = size.String()
		}
		return maps.Equal(sizes, want), fmt.Sprintf("they are %v", sizes), err
	})
}
