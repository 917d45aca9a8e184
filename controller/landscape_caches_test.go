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

// applySet creates or scales a StatefulSet. Like gardener-resource-manager, it does not change the
// claim templates of an existing StatefulSet.
func (l *landscape) applySet(ctx context.Context, set *appsv1.StatefulSet) error {
	replicas := set.Spec.Replicas
	if err := l.shoot.Create(ctx, set.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := l.shoot.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	set.Spec.Replicas = replicas
	if err := l.shoot.Update(ctx, set); err != nil {
		return err
	}
	return l.runPods(ctx, set)
}

// runPods acts as the StatefulSet controller: it creates claims and pods, and deletes pods that are
// too many.
func (l *landscape) runPods(ctx context.Context, set *appsv1.StatefulSet) error {
	for ordinal := range int32(2) {
		template, name := set.Spec.VolumeClaimTemplates[0], fmt.Sprintf("%s-%d", set.Name, ordinal)
		meta := metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: set.Spec.Selector.MatchLabels}
		pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "worker-1"}}
		if ordinal >= *set.Spec.Replicas {
			if err := l.shoot.Delete(ctx, pod); client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		meta.Name = template.Name + "-" + name
		status := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}
		for _, object := range []client.Object{&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: template.Spec, Status: status}, pod} {
			if err := l.shoot.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
				return err
			}
		}
	}
	return nil
}

// prune deletes what the ManagedResource no longer contains: StatefulSets with their claims and
// pods, and Services.
func (l *landscape) prune(ctx context.Context, keptSets, keptServices []string) error {
	services, sets, claims, pods := &corev1.ServiceList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{services, sets, claims, pods} {
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
		for j := range pods.Items {
			if pods.Items[j].Labels["app"] == set.Name {
				removed = append(removed, &pods.Items[j])
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
func (l *landscape) patchInShoot(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	refuse := func(why string) error {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), claim.Name, errors.New(why))
	}
	switch {
	case ok && claim.Status.Phase != corev1.ClaimBound:
		return refuse("only bound persistent volume claims can be expanded")
	case ok && l.fixed:
		return refuse("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	}
	return c.Patch(ctx, obj, patch, opts...)
}
