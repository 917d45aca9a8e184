//go:build e2e

package nodeless

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// pendingRemoval proves that what an owner removes while the control plane moves is removed on the
// new seed: a cache, and the high availability of another one. The old seed never saw the change.
func pendingRemoval() rig.Scenario {
	replicated := operate.CacheOf(rig.Beta)
	replicated.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	return rig.New("pending-removal",
		rig.Prove("alpha is cached, and beta with two replicas", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, nil, operate.CacheOf(rig.Alpha), replicated)
			if left := cacheKinds(ctx, p, rig.Alpha); left == "" {
				p.Fatalf("alpha has no objects, so this proves nothing")
			}
			if second := claimsOf(ctx, p, rig.Beta); len(second) != 2 {
				p.Fatalf("beta has the claims %v, want two", second)
			}
		}),

		rig.Prove("the control plane moves; the new seed knows only beta, with one replica", func(ctx context.Context, p *rig.Run) {
			was, err := p.Session.ShootWith(nil, operate.CacheOf(rig.Alpha), replicated)
			p.Check(err)
			now, err := p.Session.ShootWith(nil, operate.CacheOf(rig.Beta))
			p.Check(err)
			p.Check(p.Session.Testbed.Gardenlet.Migrate(ctx, was))
			p.Check(p.Session.Testbed.Gardenlet.Restore(ctx, now))
			configure(ctx, p, nil, operate.CacheOf(rig.Beta))
		}),

		rig.Prove("no object of alpha is left, and beta has one replica", func(ctx context.Context, p *rig.Run) {
			p.Await(ctx, "nothing of alpha is left", time.Minute, func(ctx context.Context) (bool, string, error) {
				left := cacheKinds(ctx, p, rig.Alpha)
				return left == "", left, nil
			})
			p.Await(ctx, "beta has one replica, one claim and no disruption budget", time.Minute, func(ctx context.Context) (bool, string, error) {
				state := cacheKinds(ctx, p, rig.Beta) + " " + strings.Join(claimsOf(ctx, p, rig.Beta), " ")
				return len(claimsOf(ctx, p, rig.Beta)) == 1 && !strings.Contains(state, "PodDisruptionBudget"), state, nil
			})
			p.Evidence("removed while the control plane moved: nothing left of alpha, beta with one replica")
		}),
	)
}

// cacheKinds lists the objects in kube-system with the label of the upstream's cache.
func cacheKinds(ctx context.Context, p *rig.Run, host string) string {
	p.Helper()
	var found []string
	for kind, list := range map[string]client.ObjectList{
		"StatefulSet": &appsv1.StatefulSetList{}, "Pod": &corev1.PodList{}, "Service": &corev1.ServiceList{},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{}, "NetworkPolicy": &networkingv1.NetworkPolicyList{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{},
	} {
		p.Check(p.Session.Shoot.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1alpha3.LabelUpstreamHost: host}, client.Limit(1)))
		if meta.LenList(list) > 0 {
			found = append(found, kind)
		}
	}
	return strings.Join(found, ", ")
}

func claimsOf(ctx context.Context, p *rig.Run, host string) []string {
	p.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	p.Check(p.Session.Shoot.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1alpha3.LabelUpstreamHost: host}))
	var names []string
	for _, claim := range claims.Items {
		names = append(names, claim.Name)
	}
	return names
}
