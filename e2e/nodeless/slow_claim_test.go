//go:build e2e

package nodeless

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

const (
	// holdFinalizer keeps a claim, as a volume does that is still attached or being deleted.
	holdFinalizer = "e2e.test/hold"
	// held is how long the claim takes. It is longer than the longest pause between two looks of the
	// extension, and below the minutes after which it gives up.
	held = 60 * time.Second
)

// slowClaim proves that the deletion of a Shoot waits until the claims of its caches are gone:
// right after the Extension, gardenlet deletes the controllers that delete disks.
func slowClaim() rig.Scenario {
	var claim string
	var flow *rig.Background
	return rig.New("slow-claim",
		rig.Prove("alpha is cached, and its claim will take a minute to go", func(ctx context.Context, p *rig.Run) {
			cached(rig.Alpha)(ctx, p)
			claim = claimsOf(ctx, p, rig.Alpha)[0]
			p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(hold(ctx, p, claim, false)) })
			p.Check(hold(ctx, p, claim, true))
		}),

		rig.Prove("the Extension is not deleted while the claim is there", func(ctx context.Context, p *rig.Run) {
			flow = p.Background(ctx, func(ctx context.Context) error {
				return p.Session.Testbed.Gardenlet.Delete(ctx, gardenlet.NewShoot(p.Session.Testbed.Gardenlet.Name))
			})
			p.Await(ctx, "the claim is being deleted", time.Minute, func(ctx context.Context) (bool, string, error) {
				object, err := getClaim(ctx, p, claim)
				return err == nil && object.DeletionTimestamp != nil, fmt.Sprint(err), flow.Failed()
			})
			start := time.Now()
			p.Await(ctx, "a minute has passed", 2*held, func(ctx context.Context) (bool, string, error) {
				if _, err := rig.GetExtension(ctx, p); err != nil {
					return false, "", fmt.Errorf("the Extension is gone, and the claim is not: %w", err)
				}
				return time.Since(start) > held, "", flow.Failed()
			})
		}),

		rig.Prove("then the claim goes, and the deletion ends", func(ctx context.Context, p *rig.Run) {
			p.Check(hold(ctx, p, claim, false))
			p.Join(ctx, flow, "gardenlet has deleted the shoot", rig.ReconcileTimeout)
			if _, err := getClaim(ctx, p, claim); !apierrors.IsNotFound(err) {
				p.Fatalf("claim %s is left: %v", claim, err)
			}
			p.Evidence("the Extension waited %s for a claim", rig.Seconds(held))
		}),
	)
}

func getClaim(ctx context.Context, p *rig.Run, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, claim)
	return claim, err
}

// hold adds or removes the finalizer of a claim.
func hold(ctx context.Context, p *rig.Run, name string, keep bool) error {
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
