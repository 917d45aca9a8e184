//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/cachetest/original"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// leftover lists the objects that the original's ManagedResources created in the shoot.
type leftover []corev1.ObjectReference

// rememberOriginal returns the objects of the original's ManagedResources.
func rememberOriginal(ctx context.Context, p *rig.Run) leftover {
	p.Helper()
	var all leftover
	for _, name := range []string{v1alpha3.ManagedResourceServices, v1alpha3.ManagedResourceCaches} {
		for _, object := range managed(ctx, p, name) {
			all = append(all, object.ObjectReference)
		}
	}
	policy := func(object corev1.ObjectReference) bool { return object.Name == original.NetworkPolicy }
	if !slices.ContainsFunc(all, policy) {
		p.Fatalf("the original's ManagedResources do not list %s: %v", original.NetworkPolicy, all)
	}
	return all
}

// managed returns the objects in the status of a ManagedResource, or none if the ManagedResource
// does not exist.
func managed(ctx context.Context, p *rig.Run, name string) []resourcesv1alpha1.ObjectReference {
	p.Helper()
	resource := &resourcesv1alpha1.ManagedResource{}
	err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: rig.ShootNamespace, Name: name}, resource)
	p.Check(client.IgnoreNotFound(err))
	return resource.Status.Resources
}

// monitoringResource is the ManagedResource of this extension that adopts the monitoring objects.
const monitoringResource = "extension-registry-cache-monitoring"

// proveGone proves that each object of the original is gone, unless a ManagedResource of this
// extension lists it, or the garbage collector will delete it.
func (l leftover) proveGone(ctx context.Context, p *rig.Run) {
	p.Helper()
	p.Await(ctx, "nothing of the original is left in the clusters", time.Minute, func(ctx context.Context) (bool, string, error) {
		kept := slices.Concat(managed(ctx, p, v1alpha3.ManagedResourceServices), managed(ctx, p, v1alpha3.ManagedResourceCaches))
		var left []string
		for _, object := range l {
			if lists(kept, object) {
				continue
			}
			exists, err := orphan(ctx, p, object)
			if err != nil {
				return false, "", err
			}
			if exists {
				left = append(left, object.Kind+" "+object.Namespace+"/"+object.Name)
			}
		}
		inSeed, err := leftInSeed(ctx, p)
		left = append(left, inSeed...)
		return len(left) == 0, strings.Join(left, ", "), err
	})
}

func lists(resources []resourcesv1alpha1.ObjectReference, object corev1.ObjectReference) bool {
	return slices.ContainsFunc(resources, func(r resourcesv1alpha1.ObjectReference) bool {
		return r.Kind == object.Kind && r.Namespace == object.Namespace && r.Name == object.Name
	})
}

// leftInSeed returns what is left of the original in the seed. The Lease and the monitoring objects
// have the same names in both extensions.
func leftInSeed(ctx context.Context, p *rig.Run) ([]string, error) {
	left, err := registriesOf(ctx, p)
	if err != nil {
		return nil, err
	}
	adopted := managed(ctx, p, monitoringResource)
	for _, object := range original.Monitoring(rig.ShootNamespace) {
		gvk, err := p.Session.Seed.GroupVersionKindFor(object)
		if err != nil {
			return nil, err
		}
		reference := corev1.ObjectReference{Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
		err = p.Session.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && !lists(adopted, reference) {
			left = append(left, gvk.Kind+" "+reference.Namespace+"/"+reference.Name+" in the seed")
		}
	}
	lease := &coordinationv1.Lease{}
	err = p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: cachetest.ExtensionNamespace, Name: original.Lease}, lease)
	if ptr.Deref(lease.Spec.HolderIdentity, "") == original.Holder {
		left = append(left, "the original still leads")
	}
	return left, client.IgnoreNotFound(err)
}

// orphan reports whether the object exists and nothing will delete it.
func orphan(ctx context.Context, p *rig.Run, reference corev1.ObjectReference) (bool, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(reference.APIVersion)
	object.SetKind(reference.Kind)
	err := p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || object.GetLabels()[references.LabelKeyGarbageCollectable] != references.LabelValueGarbageCollectable {
		return err == nil, err
	}
	pods := &corev1.PodList{}
	if err := p.Session.Shoot.List(ctx, pods, client.InNamespace(reference.Namespace)); err != nil {
		return false, err
	}
	for _, pod := range pods.Items {
		for key, name := range pod.Annotations {
			if references.KindFromAnnotationKey(key) == strings.ToLower(reference.Kind) && name == reference.Name {
				return true, nil
			}
		}
	}
	return false, nil
}

// registriesOf returns the registries in OperatingSystemConfigs, which only the original adds.
func registriesOf(ctx context.Context, p *rig.Run) ([]string, error) {
	configs := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := p.Session.Seed.List(ctx, configs, client.InNamespace(rig.ShootNamespace)); err != nil {
		return nil, err
	}
	var found []string
	for _, config := range configs.Items {
		if config.Spec.CRIConfig == nil || config.Spec.CRIConfig.Containerd == nil {
			continue
		}
		for _, registry := range config.Spec.CRIConfig.Containerd.Registries {
			found = append(found, "registry "+registry.Upstream+" in OperatingSystemConfig "+config.Name)
		}
	}
	return found, nil
}
