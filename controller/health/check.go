package health

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// check returns what is wrong with the caches, in their order. It sends the shoot two requests, and
// one more for each claim that is too small.
func check(ctx context.Context, shoot client.Client, caches []v1alpha3.RegistryCache, identities v1alpha3.Identities) ([]problem, error) {
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
		found, err := claimProblems(ctx, shoot, &caches[i], claims)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
		problems = append(problems, podProblems(caches[i], podsOf(caches[i], identities, pods.Items))...)
	}
	return problems, nil
}

// claimProblems returns what is wrong with the claims of the cache. To find out whether a claim can
// grow, it tries without effect (dry run): only the API server knows all StorageClasses, quotas and
// webhooks. A claim that is being deleted, or of a replica that the cache no longer has, does not
// matter.
func claimProblems(ctx context.Context, shoot client.Client, c *v1alpha3.RegistryCache, claims []volume.Claim) ([]problem, error) {
	var problems []problem
	for _, claim := range claims {
		if claim.Cache != c || claim.Surplus() || claim.DeletionTimestamp != nil {
			continue
		}
		var refused error
		if claim.TooSmall() && claim.Bound() {
			if refused = claim.Grow(ctx, shoot, client.DryRunAll); refused != nil && !volume.Refused(refused) {
				return nil, refused
			}
		}
		if found := claimProblem(claim, refused); found != nil {
			problems = append(problems, *found)
		}
	}
	return problems, nil
}

func podsOf(c v1alpha3.RegistryCache, identities v1alpha3.Identities, pods []corev1.Pod) []corev1.Pod {
	var own []corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && identities.Owner(pod.Labels) == c.Upstream {
			own = append(own, pod)
		}
	}
	return own
}
