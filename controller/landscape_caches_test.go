package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// runShoot acts as the controllers of the shoot, and as the part of its API server that assigns
// cluster IPs.
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
		if err := l.runPods(ctx, &sets.Items[i]); err != nil {
			return err
		}
	}
	if err := l.collectPods(ctx, sets.Items); err != nil {
		return err
	}
	return l.runCleaner(ctx)
}

// runPods acts as the StatefulSet controller: it creates claims and pods, and deletes surplus pods.
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
		l.nextIP++
		meta.UID = types.UID(fmt.Sprint("claim-", l.nextIP))
		status := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}
		for _, object := range []client.Object{&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: template.Spec, Status: status}, pod} {
			if err := l.shoot.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
				return err
			}
		}
	}
	return nil
}

// collectPods acts as the garbage collector: it deletes the pods of deleted StatefulSets.
func (l *landscape) collectPods(ctx context.Context, sets []appsv1.StatefulSet) error {
	pods := &corev1.PodList{}
	if err := l.shoot.List(ctx, pods, client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owned := func(set appsv1.StatefulSet) bool { return set.Name == pod.Labels[v1alpha3.LabelApp] }
		if !slices.ContainsFunc(sets, owned) {
			if err := l.shoot.Delete(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// patchInShoot acts as the admission of the shoot's API server.
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

// deleteInShoot and deleteAllInShoot act as a policy of the shoot's owner.
func (l *landscape) deleteInShoot(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	if err := l.guard(obj); err != nil {
		return err
	}
	return c.Delete(ctx, obj, opts...)
}

func (l *landscape) deleteAllInShoot(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := l.guard(obj); err != nil {
		return err
	}
	return c.DeleteAllOf(ctx, obj, opts...)
}

func (l *landscape) guard(obj client.Object) error {
	if _, claim := obj.(*corev1.PersistentVolumeClaim); claim && l.guarded {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), obj.GetName(), errors.New("a policy forbids to delete claims"))
	}
	return nil
}

// makeReplicated acts as the webhook of gardener-resource-manager for high availability
// (pkg/resourcemanager/webhook/highavailabilityconfig, pkg/utils/kubernetes.GetReplicaCount).
func makeReplicated(obj client.Object) error {
	set, ok := obj.(*unstructured.Unstructured)
	if !ok || set.GetKind() != "StatefulSet" || set.GetLabels()[resourcesv1alpha1.HighAvailabilityConfigType] == "" {
		return nil
	}
	if replicas, found, err := unstructured.NestedInt64(set.Object, "spec", "replicas"); err != nil || !found || replicas == 0 {
		return err
	}
	return unstructured.SetNestedField(set.Object, int64(2), "spec", "replicas")
}
