package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// problem is something that is wrong with one cache. Its text changes only with its cause, because
// each change of a condition is a write to the seed.
type problem struct {
	upstream, text string
	// lasting problems need someone to act. Others are normal for minutes, while a cache starts.
	lasting bool
}

// progressingThreshold is how long problems that are not lasting are reported as Progressing. A
// cache may need minutes to start: its volume is provisioned, its image pulled, its store opened.
const progressingThreshold = 5 * time.Minute

// describe lists the problems in one line. It contains at most eight, so that the condition fits
// into the status of the Shoot.
func describe(problems []problem) string {
	const most = 8
	var texts []string
	for _, p := range problems[:min(len(problems), most)] {
		texts = append(texts, fmt.Sprintf("cache of %s: %s", p.upstream, p.text))
	}
	if more := len(problems) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

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
		return nil, fmt.Errorf("list the pods of the caches in the shoot: %w", err)
	}
	var problems []problem
	for i := range caches {
		for _, claim := range claims {
			if claim.Cache != &caches[i] {
				continue
			}
			found, err := a.claimProblem(ctx, shoot, claim)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
		foreign := func(p corev1.Pod) bool {
			return p.DeletionTimestamp != nil || identities.Owner(p.Labels) != caches[i].Upstream
		}
		problems = append(problems, podProblems(caches[i], slices.DeleteFunc(slices.Clone(pods.Items), foreign))...)
	}
	return problems, nil
}

// claimProblem returns what is wrong with the claim, if anything. To find out whether the claim can
// grow, it sends a dry run: only the API server knows all StorageClasses, quotas and webhooks. In
// the same way, it finds out why a removed replica's claim still exists. A claim that is being
// deleted does not matter.
func (a *actuator) claimProblem(ctx context.Context, shoot client.Client, claim volume.Claim) ([]problem, error) {
	of := func(lasting bool, format string, args ...any) ([]problem, error) {
		text := fmt.Sprintf("PersistentVolumeClaim %s/%s ", claim.Namespace, claim.Name) + fmt.Sprintf(format, args...)
		return []problem{{upstream: claim.Cache.Upstream, text: text, lasting: lasting}}, nil
	}
	requested, wanted, class := claim.Requested(), claim.Cache.Volume.Size, ptr.Deref(claim.Spec.StorageClassName, "")
	switch {
	case claim.DeletionTimestamp != nil:
		return nil, nil
	case claim.Surplus():
		if err := claim.Delete(ctx, shoot, client.DryRunAll); volume.Refused(err) && !noDryRun(err) {
			return of(true, "of a removed replica stays: %s", reasonOf(err))
		}
		return nil, nil
	case !claim.Bound():
		return of(false, "is not bound (%s): see its events and StorageClass %q", claim.Status.Phase, class)
	case claim.TooSmall():
		refused := claim.Grow(ctx, shoot, client.DryRunAll)
		if refused != nil && !volume.Refused(refused) {
			return nil, refused
		}
		if refused = a.lastRefusal(claim, refused); noDryRun(refused) {
			return of(true, "has %s instead of %s, for an unknown reason: %s; reconcile the Shoot, and see the events of the Extension",
				requested.String(), wanted.String(), reasonOf(refused))
		}
		if refused != nil {
			return of(true, "cannot grow from %s to %s: %s; fix the cause, such as allowVolumeExpansion of StorageClass %q or a quota, "+
				"and reconcile the Shoot, or go back to %s", requested.String(), wanted.String(), reasonOf(refused), class, requested.String())
		}
	}
	if failure := resizeFailure(claim); failure != "" {
		return of(true, "could not be resized by its storage provider: %s", failure)
	}
	return nil, nil
}

// lastRefusal returns refused or, if the shoot does not support dry runs, the last known refusal.
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

// noDryRun reports whether a webhook of the shoot does not support dry runs. Then the API server
// refuses all dry runs, whatever the claim.
func noDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// resizeFailure returns the error of the storage provider or of kubelet, if the last resize failed.
func resizeFailure(claim volume.Claim) string {
	for _, condition := range claim.Status.Conditions {
		failed := condition.Type == corev1.PersistentVolumeClaimControllerResizeError || condition.Type == corev1.PersistentVolumeClaimNodeResizeError
		if failed && condition.Status == corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// reasonOf returns the message of the API server without added context.
func reasonOf(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return answer.Status().Message
	}
	return err.Error()
}

// podProblems returns what is wrong with the pods of the cache.
func podProblems(c v1alpha3.RegistryCache, pods []corev1.Pod) []problem {
	var problems []problem
	add := func(format string, args ...any) {
		problems = append(problems, problem{upstream: c.Upstream, text: fmt.Sprintf(format, args...)})
	}
	if wanted := int(cache.Replicas(c)); len(pods) < wanted {
		add("it has %d of %d pods: see the events of its StatefulSet", len(pods), wanted)
	}
	for i := range pods {
		if reason := notReady(&pods[i]); reason != "" {
			add("pod %s/%s %s", pods[i].Namespace, pods[i].Name, reason)
		}
	}
	return problems
}

// notReady returns why the pod does not serve, or an empty string if it does. It omits messages of
// containers, which contain times and counters.
func notReady(pod *corev1.Pod) string {
	if health.IsPodReady(pod) {
		return ""
	}
	if _, scheduled := health.GetPodCondition(&pod.Status, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return "is pending: " + scheduled.Message
	}
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" {
			return fmt.Sprintf("is not ready (%s): see its events and its log", waiting.Reason)
		}
	}
	return "is not ready: see its events and its log"
}
