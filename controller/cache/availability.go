package cache

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// availableReplicas is the number of instances of a highly available cache. It is also what Gardener's contract gives a
// component of type server in a shoot (pkg/utils/kubernetes.GetReplicaCount): gardener-resource-manager would set it.
const availableReplicas int32 = 2

func isHighlyAvailable(cache v1alpha3.RegistryCache) bool {
	return cache.HighAvailability != nil && cache.HighAvailability.Enabled
}

// makeAvailable gives the StatefulSet a second instance, on another node and in another zone where there is one. The
// label hands both to the webhook of gardener-resource-manager, which knows the zones of the workers and then insists on
// a spread over them; what stands here holds without it, too.
func makeAvailable(set *appsv1.StatefulSet) {
	set.Spec.Replicas = ptr.To(availableReplicas)
	set.Labels[resourcesv1alpha1.HighAvailabilityConfigType] = resourcesv1alpha1.HighAvailabilityConfigTypeServer
	for _, topology := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		set.Spec.Template.Spec.TopologySpreadConstraints = append(set.Spec.Template.Spec.TopologySpreadConstraints,
			corev1.TopologySpreadConstraint{
				MaxSkew:     1,
				TopologyKey: topology,
				// A second cache on the same node is better than one that waits for a node for ever.
				WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector:     set.Spec.Selector,
			})
	}
	set.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: awayFrom(set.Spec.Selector)}
}

// awayFrom keeps instances off the same node where nodes have no zone: the scheduler leaves nodes that lack one of the
// topologies out of the spread over all of them.
func awayFrom(instances *metav1.LabelSelector) *corev1.PodAntiAffinity {
	return &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight:          100,
		PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: instances},
	}}}
}

// podDisruptionBudget keeps one of the instances while nodes are drained. One that is not ready serves nobody, and never
// holds a drain up.
func podDisruptionBudget(cache v1alpha3.RegistryCache) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: objectMeta(cache.Upstream),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: labels(cache.Upstream)},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}
