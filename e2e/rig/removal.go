//go:build e2e

package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// holdFinalizer delays the removal of a claim, as a volume that is still attached does.
const holdFinalizer = "e2e.test/hold"

// DeletionWaits returns steps for a Shoot in which alpha is cached. They prove that its deletion
// waits until the claims are gone, because right after the Extension, gardenlet deletes the
// controllers that delete disks. One claim is held for the given time, which should be longer than
// the extension's pause between two checks, and shorter than its timeout.
func DeletionWaits(held time.Duration) []Step {
	var claim string
	var flow *Background
	return []Step{
		Prove("the deletion of one of alpha's claims is blocked", func(ctx context.Context, p *Run) {
			claim = p.Claims(ctx, Alpha)[0]
			p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(hold(ctx, p, claim, false)) })
			p.Check(hold(ctx, p, claim, true))
		}),

		Prove("the Extension is not deleted while the claim exists", func(ctx context.Context, p *Run) {
			flow = p.Background(ctx, func(ctx context.Context) error {
				return p.Session.Testbed.Gardenlet.Delete(ctx, gardenlet.NewShoot(p.Session.Testbed.Gardenlet.Name))
			})
			p.Await(ctx, "the claim is being deleted", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
				object, err := getClaim(ctx, p, claim)
				return err == nil && object.DeletionTimestamp != nil, fmt.Sprint(err), flow.Failed()
			})
			start := time.Now()
			p.Await(ctx, "the claim was held for "+Seconds(held), 2*held, func(ctx context.Context) (bool, string, error) {
				if _, err := GetExtension(ctx, p); err != nil {
					return false, "", fmt.Errorf("the Extension is gone, and claim %s is not: %w", claim, err)
				}
				return time.Since(start) > held, "", flow.Failed()
			})
		}),

		Prove("once the claim is gone, the deletion ends", func(ctx context.Context, p *Run) {
			p.Check(hold(ctx, p, claim, false))
			p.Join(ctx, flow, "gardenlet has deleted the shoot", ReconcileTimeout)
			if _, err := getClaim(ctx, p, claim); !apierrors.IsNotFound(err) {
				p.Fatalf("claim %s is left: %v", claim, err)
			}
			p.Evidence("the Extension waited %s for a claim", Seconds(held))
		}),
	}
}

func getClaim(ctx context.Context, p *Run, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, claim)
	return claim, err
}

// hold adds or removes the finalizer of a claim.
func hold(ctx context.Context, p *Run, name string, keep bool) error {
	claim, err := getClaim(ctx, p, name)
	if err != nil {
		return err
	}
	patch := client.MergeFrom(claim.DeepCopy())
	claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(finalizer string) bool { return finalizer == holdFinalizer })
	if keep {
		claim.Finalizers = append(claim.Finalizers, holdFinalizer)
	}
	return p.Session.Shoot.Patch(ctx, claim, patch)
}

// PendingRemoval returns steps in which an owner removes a cache, and the high availability of
// another one, while the control plane moves. They prove that the new seed removes the objects,
// although the old one never saw the change. configure reconciles the Shoot with exactly the given
// caches.
func PendingRemoval(configure func(context.Context, *Run, ...v1alpha3.RegistryCache)) []Step {
	replicated := cachetest.Cache(Beta)
	replicated.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	return []Step{
		Prove("alpha is cached, and beta with two replicas", func(ctx context.Context, p *Run) {
			configure(ctx, p, cachetest.Cache(Alpha), replicated)
			if left := p.cacheKinds(ctx, Alpha); left == "" {
				p.Fatalf("alpha has no objects, so this proves nothing")
			}
			if second := p.Claims(ctx, Beta); len(second) != 2 {
				p.Fatalf("beta has the claims %v, want two", second)
			}
		}),

		Prove("the control plane moves; the new seed knows only beta, with one replica", func(ctx context.Context, p *Run) {
			was, err := p.Session.ShootWith(nil, cachetest.Cache(Alpha), replicated)
			p.Check(err)
			now, err := p.Session.ShootWith(nil, cachetest.Cache(Beta))
			p.Check(err)
			CollectGarbage(ctx, p)
			p.Check(p.Session.Testbed.Gardenlet.Migrate(ctx, was))
			p.Check(p.Session.Testbed.Gardenlet.Restore(ctx, now))
			configure(ctx, p, cachetest.Cache(Beta))
		}),

		Prove("no object of alpha is left, and beta has one replica", func(ctx context.Context, p *Run) {
			p.Await(ctx, "nothing of alpha is left", time.Minute, func(ctx context.Context) (bool, string, error) {
				left := p.cacheKinds(ctx, Alpha)
				return left == "", left, nil
			})
			p.Await(ctx, "beta has one replica, one claim and no disruption budget", time.Minute, func(ctx context.Context) (bool, string, error) {
				state := p.cacheKinds(ctx, Beta) + " " + strings.Join(p.Claims(ctx, Beta), " ")
				return len(p.Claims(ctx, Beta)) == 1 && !strings.Contains(state, "PodDisruptionBudget"), state, nil
			})
			p.Evidence("removed while the control plane moved: nothing left of alpha, beta with one replica")
		}),
	}
}

// cacheKinds returns the kinds of objects in kube-system with the label of the upstream's cache.
func (p *Run) cacheKinds(ctx context.Context, host string) string {
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
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// Claims returns the names of the volume claims of the upstream's cache.
func (p *Run) Claims(ctx context.Context, host string) []string {
	p.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	p.Check(p.Session.Shoot.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1alpha3.LabelUpstreamHost: host}))
	var names []string
	for _, claim := range claims.Items {
		names = append(names, claim.Name)
	}
	return names
}
