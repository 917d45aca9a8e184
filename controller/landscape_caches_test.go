package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/utils/managedresources"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// applyCaches acts as gardener-resource-manager for Services and StatefulSets, and as the
// controller that creates the claims.
func (l *landscape) applyCaches(ctx context.Context, seed client.Client) error {
	objects, err := managedresources.GetObjects(ctx, seed, namespace, cachesName)
	if err != nil {
		return err
	}
	var names, services []string
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.Service:
			l.nextIP++
			object.Spec.ClusterIP = fmt.Sprintf("10.0.0.%d", l.nextIP)
			err = client.IgnoreAlreadyExists(l.shoot.Create(ctx, object))
			services = append(services, object.Name)
		case *appsv1.StatefulSet:
			err = l.applySet(ctx, object)
			names = append(names, object.Name)
		default:
			continue
		}
		if err != nil {
			return err
		}
	}
	return l.prune(ctx, names, services)
}

// applySet creates a StatefulSet, its claim and its pod. Like gardener-resource-manager, it does
// not change the claim templates of an existing StatefulSet.
func (l *landscape) applySet(ctx context.Context, set *appsv1.StatefulSet) error {
	l.nextUID++
	set.UID = types.UID(fmt.Sprintf("set-%d", l.nextUID))
	if err := l.shoot.Create(ctx, set); client.IgnoreAlreadyExists(err) != nil {
		return err
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
	if err := l.shoot.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
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
	if _, isSet := obj.(*appsv1.StatefulSet); !isSet {
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

// prune deletes what the ManagedResource no longer contains: StatefulSets with their claims, and
// Services.
func (l *landscape) prune(ctx context.Context, keptSets, keptServices []string) error {
	services, sets, claims := &corev1.ServiceList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{services, sets, claims} {
		if err := l.shoot.List(ctx, list, client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
			return err
		}
	}
	var removed []client.Object
	for i := range services.Items {
		if !slices.Contains(keptServices, services.Items[i].Name) {
			removed = append(removed, &services.Items[i])
		}
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if slices.Contains(keptSets, set.Name) {
			continue
		}
		removed = append(removed, set)
		for j := range claims.Items {
			if claims.Items[j].Labels["app"] == set.Name {
				removed = append(removed, &claims.Items[j])
			}
		}
	}
	for _, object := range removed {
		if err := l.shoot.Delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// patchInShoot rejects what the admission of the shoot's API server rejects.
func patchInShoot(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && claim.Status.Phase != corev1.ClaimBound {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), claim.Name, errors.New("only bound persistent volume claims can be expanded"))
	}
	return c.Patch(ctx, obj, patch, opts...)
}
