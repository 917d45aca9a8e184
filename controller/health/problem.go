package health

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/volume"
)

// problem is something that is wrong with one cache. Its text changes only with its cause, because
// each change of a condition is a write to the seed.
type problem struct {
	upstream, text string
	// lasting problems stay until someone acts. Others are normal for minutes, while a cache starts.
	lasting bool
}

// describe lists the problems in one line. It leaves out some of many, so that the condition fits
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

// claimProblem returns what is wrong with the claim, or nil. The argument refused is the error of
// an attempt to grow it, or nil.
func claimProblem(claim volume.Claim, refused error) *problem {
	class := ptr.Deref(claim.Spec.StorageClassName, "")
	of := func(lasting bool, format string, args ...any) *problem {
		text := fmt.Sprintf("PersistentVolumeClaim %s/%s ", claim.Namespace, claim.Name) + fmt.Sprintf(format, args...)
		return &problem{upstream: claim.Cache.Upstream, text: text, lasting: lasting}
	}
	requested := claim.Requested()
	switch failure := resizeFailure(claim); {
	case !claim.Bound():
		return of(false, "is not bound (%s): see its events and StorageClass %q", claim.Status.Phase, class)
	case noDryRun(refused):
		return of(true, "has %s instead of %s, for an unknown reason: %s; reconcile the Shoot, and see the events of the Extension",
			requested.String(), claim.Cache.Volume.Size.String(), reasonOf(refused))
	case refused != nil:
		return of(true, "cannot grow from %s to %s: %s; fix the cause, such as allowVolumeExpansion of StorageClass %q or a quota, "+
			"and reconcile the Shoot, or go back to %s", requested.String(), claim.Cache.Volume.Size.String(), reasonOf(refused), class, requested.String())
	case failure != "":
		return of(true, "could not be resized by its storage provider: %s", failure)
	}
	return nil
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

// reasonOf returns the message of the API server without what was added to it.
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

// notReady returns why the pod does not serve, or an empty string if it does. It leaves out
// messages of containers, which contain times and counters.
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
