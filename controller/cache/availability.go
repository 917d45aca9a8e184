package cache

import (
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Replicas returns the number of replicas of the cache, each with its own volume. It is the number
// that gardener-resource-manager sets for a highly available shoot component of type server
// (pkg/utils/kubernetes.GetReplicaCount).
func Replicas(cache v1alpha3.RegistryCache) int32 {
	if isHighlyAvailable(cache) {
		return 2
	}
	return 1
}

func isHighlyAvailable(cache v1alpha3.RegistryCache) bool {
	return cache.HighAvailability != nil && cache.HighAvailability.Enabled
}

// makeAvailable adds a label, and spreads the replicas over nodes and zones.
// Because of the label, the webhook of gardener-resource-manager makes the spread over the zones of
// the workers mandatory. Without the webhook, the soft constraints below still apply.
func makeAvailable(set *appsv1.StatefulSet) {
	set.Labels[resourcesv1alpha1.HighAvailabilityConfigType] = resourcesv1alpha1.HighAvailabilityConfigTypeServer
	for _, topology := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		set.Spec.Template.Spec.TopologySpreadConstraints = append(set.Spec.Template.Spec.TopologySpreadConstraints,
			corev1.TopologySpreadConstraint{
				MaxSkew:     1,
				TopologyKey: topology,
				// It is better to have both replicas on one node than to have one that remains pending.
				WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector:     set.Spec.Selector,
			})
	}
	// Topology spread does not prefer different nodes in clusters without zones: the scheduler ignores
	// nodes that lack one of the topology labels.
	otherNodes := &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight:          100,
		PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: set.Spec.Selector},
	}}}
	affinity := ptr.Deref(set.Spec.Template.Spec.Affinity, corev1.Affinity{})
	affinity.PodAntiAffinity = otherNodes
	set.Spec.Template.Spec.Affinity = &affinity
}

// peersName returns the name of the Service by which the replicas find each other. Names of caches
// begin with registry-, so none is equal to it.
func peersName(id v1alpha3.Identity) string { return "peers-" + id.Name }

// peersService returns the Service that resolves to the addresses of all replicas that are ready.
// It lacks the label upstream-host, which marks the Service that nodes pull from.
func peersService(id v1alpha3.Identity) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: peersName(id), Namespace: metav1.NamespaceSystem, Labels: map[string]string{v1alpha3.LabelApp: id.Name},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  labels(id),
			Ports:     []corev1.ServicePort{servicePort(portName, v1alpha3.CachePort)},
		},
	}
}

// AvailabilityObjects returns the objects that only a highly available cache has.
func AvailabilityObjects(id v1alpha3.Identity) []client.Object {
	return []client.Object{peersService(id), podDisruptionBudget(id)}
}

// podDisruptionBudget returns the budget that keeps one replica running while nodes are drained.
// Pods that are not ready serve no requests, so they never block a drain.
func podDisruptionBudget(id v1alpha3.Identity) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: objectMeta(id),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             new(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: labels(id)},
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}
