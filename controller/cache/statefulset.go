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
	// volumeName is part of the claim's name, <volumeName>-<StatefulSet>-<ordinal>.
	volumeName = "cache-volume"

	// finalizeDeletionAfter is how long gardener-resource-manager waits for the pods of a deleted
	// StatefulSet. A pod on a dead node never terminates and would block the deletion of the cache or
	// the Shoot. A pod on a healthy node needs less time than this.
	finalizeDeletionAfter = "90s"
)

// statefulSet returns the StatefulSet whose pods serve the upstream.
func statefulSet(cache v1alpha3.RegistryCache, shoot Shoot, mounted []mountedObject) (*appsv1.StatefulSet, error) {
	meta := objectMeta(cache.Upstream)
	meta.Annotations = map[string]string{
		resourcesv1alpha1.FinalizeDeletionAfter: finalizeDeletionAfter,
		// podManagementPolicy is immutable, so a StatefulSet of an earlier version is replaced. Its
		// claims stay: they are deleted with the ManagedResource only.
		resourcesv1alpha1.DeleteOnInvalidUpdate: "true",
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			ServiceName: v1alpha3.Name(cache.Upstream),
			Replicas:    ptr.To[int32](1),
			// The default, OrderedReady, never replaces a pod that is not ready. A pod that cannot start
			// because of its image or volume would stay broken after the fix (kubernetes#67250).
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			RevisionHistoryLimit: ptr.To[int32](2),
			Selector:             &metav1.LabelSelector{MatchLabels: labels(cache.Upstream)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(cache.Upstream)},
				Spec:       podSpec(cache, shoot, mounted),
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{volumeClaim(cache)},
		},
	}
	if isHighlyAvailable(cache) {
		makeAvailable(set)
	}
	// Without the annotations that name Secrets and ConfigMap, the garbage collector of
	// gardener-resource-manager deletes them (gardener-extension-registry-cache#363).
	if err := references.InjectAnnotations(set); err != nil {
		return nil, fmt.Errorf("annotating the StatefulSet of upstream %s: %w", cache.Upstream, err)
	}
	return set, nil
}

// podLabels adds the labels that Gardener's network policies in kube-system select. They let the
// pod reach DNS and its upstream, and let the shoot's Prometheus reach its metrics through the API
// server proxy.
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
