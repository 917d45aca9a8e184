package cache

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// volumeName is part of the name of the claim, <volumeName>-<StatefulSet>-<ordinal>.
	volumeName = "cache-volume"

	// finalizeDeletionAfter is when gardener-resource-manager stops waiting for the pods of a deleted StatefulSet. A pod
	// on a dead node never ends, and would hold up the removal of the cache or of the Shoot. It is longer than a pod on a
	// living node takes.
	finalizeDeletionAfter = "90s"
)

// statefulSet returns the StatefulSet with the pods that serve the upstream.
func statefulSet(cache v1alpha3.RegistryCache, shoot Shoot, files files) (*appsv1.StatefulSet, error) {
	meta := objectMeta(cache.Upstream)
	meta.Annotations = map[string]string{
		resourcesv1alpha1.FinalizeDeletionAfter: finalizeDeletionAfter,
		// A StatefulSet of an earlier version cannot become one with another podManagementPolicy, so it is replaced. The
		// claims of its pods stay: they go with the ManagedResource only.
		resourcesv1alpha1.DeleteOnInvalidUpdate: "true",
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			ServiceName: v1alpha3.Name(cache.Upstream),
			Replicas:    ptr.To[int32](1),
			// The default, OrderedReady, never replaces a pod that does not get ready: one whose image or
			// volume keeps it from starting would stay like that after the correction (kubernetes#67250).
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			RevisionHistoryLimit: ptr.To[int32](2),
			Selector:             &metav1.LabelSelector{MatchLabels: labels(cache.Upstream)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(cache.Upstream)},
				Spec:       podSpec(cache, shoot, files),
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{volumeClaim(cache)},
		},
	}
	if isHighlyAvailable(cache) {
		makeAvailable(set)
	}
	// Without the annotations that name Secrets and ConfigMap, the garbage collector of gardener-resource-manager deletes them
	// (gardener-extension-registry-cache#363).
	if err := references.InjectAnnotations(set); err != nil {
		return nil, fmt.Errorf("annotating the StatefulSet of upstream %s: %w", cache.Upstream, err)
	}
	return set, nil
}

// podLabels adds to the labels what lets the pod through the network policies of a shoot's kube-system: to DNS and to
// its upstream, and the shoot's Prometheus to its metrics, by the proxy of the API server.
func podLabels(upstream string) map[string]string {
	result := maps.Clone(labels(upstream))
	result[v1beta1constants.LabelNetworkPolicyToDNS] = v1beta1constants.LabelNetworkPolicyAllowed
	result[v1beta1constants.LabelNetworkPolicyToPublicNetworks] = v1beta1constants.LabelNetworkPolicyAllowed
	result[v1beta1constants.LabelNetworkPolicyShootFromSeed] = v1beta1constants.LabelNetworkPolicyAllowed
	return result
}

func volumeClaim(cache v1alpha3.RegistryCache) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName, Labels: labels(cache.Upstream)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: cache.Volume.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: *cache.Volume.Size},
			},
		},
	}
}
