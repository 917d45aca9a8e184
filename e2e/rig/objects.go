//go:build e2e

package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/timeline"
)

// Record records the changes of a resource of a cluster until the scenario ends.
func (p *Run) Record(ctx context.Context, cluster Access, resource schema.GroupVersionResource, namespace string) *timeline.Recording {
	p.Helper()
	recording, err := timeline.Record(ctx, cluster.dynamic, resource, namespace)
	p.Check(err)
	p.Scenario.Cleanup(recording.Stop)
	return recording
}

// NoCleanerLeft proves that nothing is left of the cleaner: no ManagedResource and no Secret in the
// seed, no object of any kind and no pod in the shoot.
func (p *Run) NoCleanerLeft(ctx context.Context) {
	p.Helper()
	p.Await(ctx, "no object of the cleaner is left", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		seed, err := cleanerOnSeed(ctx, p)
		if err != nil {
			return false, "", err
		}
		shoot, err := originatedFrom(ctx, p.Session.Shoot, v1alpha3.ManagedResourceCleaner)
		if err != nil {
			return false, "", err
		}
		left := slices.Concat(seed, shoot)
		return len(left) == 0, strings.Join(left, ", "), nil
	})
	p.Evidence("no cleaner object left")
}

func cleanerOnSeed(ctx context.Context, p *Run) ([]string, error) {
	var left []string
	err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: ShootNamespace, Name: v1alpha3.ManagedResourceCleaner}, &resourcesv1alpha1.ManagedResource{})
	if err == nil {
		left = append(left, "ManagedResource "+v1alpha3.ManagedResourceCleaner)
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get the cleaner's ManagedResource: %w", err)
	}
	secrets := &corev1.SecretList{}
	if err := p.Session.Seed.List(ctx, secrets, client.InNamespace(ShootNamespace)); err != nil {
		return nil, fmt.Errorf("list the Secrets of ManagedResources: %w", err)
	}
	for _, secret := range secrets.Items {
		if strings.HasPrefix(secret.Name, "managedresource-"+v1alpha3.ManagedResourceCleaner) {
			left = append(left, "Secret "+secret.Name)
		}
	}
	return left, nil
}

// originatedFrom lists the objects in a cluster that gardener-resource-manager created for the
// ManagedResource, and the pods of the cleaner's DaemonSet.
func originatedFrom(ctx context.Context, cluster Access, managedResource string) ([]string, error) {
	resources, err := listable(cluster)
	if err != nil {
		return nil, err
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
			if strings.HasSuffix(origin, "/"+managedResource) || ownedBy(&object, "DaemonSet", v1alpha3.CleanerDaemonSet) {
				found = append(found, resource.Resource+" "+object.Namespace+"/"+object.Name)
			}
		}
	}
	return found, nil
}

// listable returns all resources of a cluster that can be listed, except events, which outlive
// their objects.
func listable(cluster Access) ([]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cluster.Config.Host, err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("discover the resources of %s: %w", cluster.Config.Host, err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists)
	resources, err := discovery.GroupVersionResources(lists)
	if err != nil {
		return nil, fmt.Errorf("discover the resources of %s: %w", cluster.Config.Host, err)
	}
	var all []schema.GroupVersionResource
	for resource := range resources {
		if resource.Resource != "events" {
			all = append(all, resource)
		}
	}
	return all, nil
}

// Gone proves that an object does not exist.
func (p *Run) Gone(ctx context.Context, cluster Access, object client.Object) {
	p.Helper()
	err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
	if !apierrors.IsNotFound(err) {
		p.Fatalf("%T %s is not gone: %v", object, object.GetName(), err)
	}
}
