//go:build e2e

package rig

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// holdFinalizer keeps a claim, as a volume does that is still attached or being deleted.
const holdFinalizer = "e2e.test/hold"

// DeletionWaits returns the steps that prove that the deletion of a Shoot in which alpha is cached
// waits until the claims of its caches are gone: right after the Extension, gardenlet deletes the
// controllers that delete disks. One claim takes the given time, which should be longer than the
// longest pause between two looks of the extension, and below the time after which it gives up.
func DeletionWaits(held time.Duration) []Step {
	var claim string
	var flow *Background
	return []Step{
		Prove("a claim of alpha will not go at once", func(ctx context.Context, p *Run) {
			claim = p.Claims(ctx, Alpha)[0]
			p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(hold(ctx, p, claim, false)) })
			p.Check(hold(ctx, p, claim, true))
		}),

		Prove("the Extension is not deleted while the claim is there", func(ctx context.Context, p *Run) {
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

		Prove("then the claim goes, and the deletion ends", func(ctx context.Context, p *Run) {
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
