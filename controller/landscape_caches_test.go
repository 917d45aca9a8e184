package controller

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runShoot acts as the controllers of the shoot, and as the part of its API server that assigns
// cluster IPs and UIDs.
func (l *landscape) runShoot(ctx context.Context) error {
	services, sets := &corev1.ServiceList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{services, sets} {
		if err := l.shoot.List(ctx, list); err != nil {
			return err
		}
	}
	for i := range services.Items {
		if service := &services.Items[i]; service.Spec.ClusterIP == "" {
			l.nextIP++
			service.Spec.ClusterIP = fmt.Sprintf("10.0.0.%d", l.nextIP)
			if err := l.shoot.Update(ctx, service); err != nil {
				return err
			}
		}
	}
	for i := range sets.Items {
		if err := l.runSet(ctx, &sets.Items[i]); err != nil {
			return err
		}
	}
	return l.runCleaner(ctx)
}

// runSet creates the claim and the pod of a StatefulSet.
func (l *landscape) runSet(ctx context.Context, set *appsv1.StatefulSet) error {
	if set.UID == "" {
		l.nextUID++
		set.UID = types.UID(fmt.Sprintf("set-%d", l.nextUID))
		if err := l.shoot.Update(ctx, set); err != nil {
			return err
		}
	}
	template := set.Spec.VolumeClaimTemplates[0]
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: template.Name + "-" + set.Name + "-0", Labels: set.Spec.Selector.MatchLabels},
		Spec:       template.Spec,
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	claim.Spec.StorageClassName = &l.storageClass
	if err := l.shoot.Create(ctx, claim); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	return l.runPod(ctx, set)
}

// runPod acts as the StatefulSet controller: it creates the pod, or adopts an existing one.
func (l *landscape) runPod(ctx context.Context, set *appsv1.StatefulSet) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name + "-0", Labels: set.Spec.Selector.MatchLabels}}
	pod.Spec.NodeName = "worker-1"
	if err := l.shoot.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := l.shoot.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return l.shoot.Update(ctx, pod)
}

// deleteInShoot deletes the object, and acts as the garbage collector for the pods of a
// StatefulSet.
func deleteInShoot(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	if err := c.Delete(ctx, obj, opts...); err != nil {
		return err
	}
	if _, isSet := obj.(*appsv1.StatefulSet); !isSet && obj.GetObjectKind().GroupVersionKind().Kind != "StatefulSet" {
		return nil
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName() + "-0"}, pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	if policy := (&client.DeleteOptions{}).ApplyOptions(opts).PropagationPolicy; policy == nil || *policy != metav1.DeletePropagationOrphan {
		return c.Delete(ctx, pod)
	}
	pod.OwnerReferences = nil
	return c.Update(ctx, pod)
}

// patchInShoot rejects what the admission of the shoot's API server rejects.
func patchInShoot(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Status.Phase != corev1.ClaimBound {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), claim.Name, errors.New("only bound persistent volume claims can be expanded"))
	}
	return c.Patch(ctx, obj, patch, opts...)
}
