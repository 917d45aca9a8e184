package health

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// check returns what is wrong with the caches, in their order. It sends the shoot two requests, and
// one more for each claim that is too small.
func (a *actuator) check(ctx context.Context, namespace string, caches []v1alpha3.RegistryCache, identities v1alpha3.Identities) ([]problem, error) {
	shoot, err := a.shoots(ctx, namespace)
	if err != nil {
		return nil, err
	}
	claims, _, err := volume.Claims(ctx, shoot, caches, identities)
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, fmt.Errorf("listing the pods of the caches in the shoot: %w", err)
	}
	var problems []problem
	for i := range caches {
		foreign := func(p corev1.Pod) bool {
			return p.DeletionTimestamp != nil || identities.Owner(p.Labels) != caches[i].Upstream
		}
		found, err := a.claimProblems(ctx, shoot, &caches[i], claims)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
		problems = append(problems, podProblems(caches[i], slices.DeleteFunc(slices.Clone(pods.Items), foreign))...)
	}
	return problems, nil
}

// claimProblems returns what is wrong with the claims of the cache. To find out whether a claim can
// grow, it tries without effect (dry run): only the API server knows all StorageClasses, quotas and
// webhooks. It finds out in the same way why a claim of a replica that the cache no longer has is
// still there. A claim that is being deleted does not matter.
func (a *actuator) claimProblems(ctx context.Context, shoot client.Client, c *v1alpha3.RegistryCache, claims []volume.Claim) ([]problem, error) {
	var problems []problem
	for _, claim := range claims {
		if claim.Cache != c || claim.DeletionTimestamp != nil {
			continue
		}
		if claim.Surplus() {
			if err := claim.Delete(ctx, shoot, client.DryRunAll); volume.Refused(err) && !noDryRun(err) {
				text := fmt.Sprintf("PersistentVolumeClaim %s/%s of a removed replica stays: %s", claim.Namespace, claim.Name, reasonOf(err))
				problems = append(problems, problem{upstream: c.Upstream, text: text, lasting: true})
			}
			continue
		}
		var refused error
		if claim.TooSmall() && claim.Bound() {
			if refused = claim.Grow(ctx, shoot, client.DryRunAll); refused != nil && !volume.Refused(refused) {
				return nil, refused
			}
			refused = a.lastRefusal(claim, refused)
		}
		if found := claimProblem(claim, refused); found != nil {
			problems = append(problems, *found)
		}
	}
	return problems, nil
}

// lastRefusal returns the answer to the last attempt to grow the claim that was an answer.
func (a *actuator) lastRefusal(claim volume.Claim, refused error) error {
	if !noDryRun(refused) {
		a.refusals.Add(claim.UID, refused)
		return refused
	}
	if last, known := a.refusals.Get(claim.UID); known {
		return last
	}
	return refused
}

// noDryRun returns whether a webhook of the shoot does not support dry runs. Then the API server
// refuses them all, which says nothing about the claim.
func noDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}
