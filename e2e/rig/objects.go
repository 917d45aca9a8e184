//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Record records the changes to a resource in a cluster until the scenario ends.
func (p *Run) Record(ctx context.Context, cluster Access, resource schema.GroupVersionResource, namespace string) *Recording {
	p.Helper()
	recording, err := startRecording(ctx, cluster.dynamic, resource, namespace)
	p.Check(err)
	p.Scenario.Cleanup(recording.Stop)
	return recording
}

// NoCleanerLeft proves that all objects of the cleaner are deleted: the ManagedResource and the
// Secret in the seed, and every object in the shoot, pods included.
func (p *Run) NoCleanerLeft(ctx context.Context) {
	p.Helper()
	p.Await(ctx, "no object of the cleaner is left", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		seed, seedErr := cleanerOnSeed(ctx, p)
		shoot, shootErr := cleanerOnShoot(ctx, p.Session.Shoot)
		left := slices.Concat(seed, shoot)
		return len(left) == 0, strings.Join(left, ", "), errors.Join(seedErr, shootErr)
	})
	p.Evidence("no cleaner object left")
}

func cleanerOnSeed(ctx context.Context, p *Run) ([]string, error) {
	var left []string
	err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: p.Session.Namespace(), Name: v1alpha3.ManagedResourceCleaner}, &resourcesv1alpha1.ManagedResource{})
	if err == nil {
		left = append(left, "ManagedResource "+v1alpha3.ManagedResourceCleaner)
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get the cleaner's ManagedResource: %w", err)
	}
	secrets := &corev1.SecretList{}
	if err := p.Session.Seed.List(ctx, secrets, client.InNamespace(p.Session.Namespace())); err != nil {
		return nil, fmt.Errorf("list the Secrets of ManagedResources: %w", err)
	}
	for _, secret := range secrets.Items {
		if strings.HasPrefix(secret.Name, "managedresource-"+v1alpha3.ManagedResourceCleaner) {
			left = append(left, "Secret "+secret.Name)
		}
	}
	return left, nil
}

// cleanerOnShoot lists the objects that gardener-resource-manager created in the shoot for the
// cleaner's ManagedResource, and the pods of the cleaner's DaemonSet.
func cleanerOnShoot(ctx context.Context, cluster Access) ([]string, error) {
	resources, err := listable(cluster)
	if err != nil {
		return nil, fmt.Errorf("discover the resources of %s: %w", cluster.Config.Host, err)
	}
	objects, err := metadata.NewForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cluster.Config.Host, err)
	}
	var found []string
	for _, resource := range resources {
		list, err := objects.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for _, object := range list.Items {
			origin := object.Annotations[resourcesv1alpha1.OriginAnnotation]
			if strings.HasSuffix(origin, "/"+v1alpha3.ManagedResourceCleaner) || OfCleaner(&object) {
				found = append(found, resource.Resource+" "+object.Namespace+"/"+object.Name)
			}
		}
	}
	return found, nil
}

// OfCleaner reports whether the cleaner's DaemonSet controls the object.
func OfCleaner(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "DaemonSet" && owner.Name == v1alpha3.CleanerDaemonSet
}

// listable returns all API resources with the verb list, except events, which outlive objects.
func listable(cluster Access) ([]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists))
	all := slices.Collect(maps.Keys(resources))
	return slices.DeleteFunc(all, func(resource schema.GroupVersionResource) bool { return resource.Resource == "events" }), err
}

// Gone proves that an object does not exist.
func (p *Run) Gone(ctx context.Context, cluster Access, object client.Object) {
	p.Helper()
	err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
	if !apierrors.IsNotFound(err) {
		p.Fatalf("%T %s is not gone: %v", object, object.GetName(), err)
	}
}

// CacheObjects lists StatefulSets, Services, pods and volume claims of caches with their UIDs,
// one per line. Two equal lists prove that nothing was recreated in between.
func CacheObjects(ctx context.Context, cluster Access) (string, error) {
	var lines []string
	add := func(kind string, object client.Object) {
		lines = append(lines, fmt.Sprintf("%s %s %s", kind, object.GetName(), object.GetUID()))
	}
	sets, services, pods, claims := &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{sets, services, pods} {
		if err := cluster.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
			return "", fmt.Errorf("list the objects of caches: %w", err)
		}
	}
	if err := cluster.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return "", fmt.Errorf("list the volume claims of caches: %w", err)
	}
	for _, set := range sets.Items {
		add("StatefulSet", &set)
		for _, claim := range claims.Items {
			if strings.HasSuffix(claim.Name, "-"+set.Name+"-0") {
				add("PersistentVolumeClaim", &claim)
			}
		}
	}
	for _, service := range services.Items {
		add("Service", &service)
	}
	for _, pod := range pods.Items {
		add("Pod", &pod)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// Identities calls CacheObjects and fails the scenario after an error or if a kind is missing.
func (p *Run) Identities(ctx context.Context, cluster Access) string {
	p.Helper()
	found, err := CacheObjects(ctx, cluster)
	p.Check(err)
	for _, kind := range []string{"StatefulSet", "Service", "Pod", "PersistentVolumeClaim"} {
		if !strings.Contains("\n"+found, "\n"+kind+" ") {
			p.Fatalf("the cluster has no %s of a cache, so this proves nothing; found:\n%s", kind, found)
		}
	}
	return found
}

// Unchanged proves that Identities returns the same as before: no object of caches was recreated.
func (p *Run) Unchanged(ctx context.Context, cluster Access, before string) {
	p.Helper()
	if after := p.Identities(ctx, cluster); after != before {
		p.Fatalf("objects of caches were recreated or deleted:\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

// RaiseFence creates the fence object and returns all events up to the creation of this object.
func RaiseFence(ctx context.Context, p *Run, recording *Recording, cluster Access, fence client.Object) []Event {
	p.Helper()
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(cluster.Delete(ctx, fence)) })
	p.Check(cluster.Create(ctx, fence))
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, fmt.Errorf("waited 15s for the event of %s", fence.GetName()))
	defer cancel()
	_, err := recording.Await(ctx, Named(fence.GetName()))
	p.Check(err)
	events, err := recording.Events()
	p.Check(err)
	return events
}

// ResourceFence returns a ManagedResource whose class no resource manager handles.
func ResourceFence(namespace string) client.Object {
	return &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-fence-", Namespace: namespace},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class: ptr.To("e2e-nobody"), SecretRefs: []corev1.LocalObjectReference{{Name: "none"}},
		},
	}
}

// DaemonSetFence returns a DaemonSet whose node selector matches no node.
func DaemonSetFence() client.Object {
	labels := map[string]string{"app": "e2e-fence"}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-fence-", Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"e2e-fence": "no-node"},
					Containers:   []corev1.Container{{Name: "none", Image: "registry-cache.testbed/none"}},
				},
			},
		},
	}
}

// StateOf returns the state of the Extension's last operation, or an empty string.
func StateOf(extension *extensionsv1alpha1.Extension) gardencorev1beta1.LastOperationState {
	if extension.Status.LastOperation == nil {
		return ""
	}
	return extension.Status.LastOperation.State
}
