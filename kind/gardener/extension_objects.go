package gardener

import (
	"context"
	"fmt"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Objects returns what Deploy writes into a seed that has none of it, in the order in which it can be applied: the extension's
// namespace, the Secret with the rendered chart, and the ManagedResource that refers to it. It is the same reconciler, run on an
// in-memory seed: no cluster is asked, and the same fields give the same objects. The renderer is that of the seed's client
// set, since charts may ask for the version of Kubernetes.
func (e Extension) Objects(ctx context.Context, renderer chartrenderer.Interface) ([]*unstructured.Unstructured, error) {
	memory := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	seed := fakekubernetes.NewClientSetBuilder().WithClient(memory).WithChartRenderer(renderer).Build()
	ctx = logf.IntoContext(ctx, logr.Discard())
	if err := e.Deploy(ctx, seed); err != nil {
		return nil, err
	}
	written, err := e.written(ctx, memory)
	if err != nil {
		return nil, fmt.Errorf("read back what gardenlet installs for extension %s: %w", e.Name, err)
	}
	objects := make([]*unstructured.Unstructured, 0, len(written))
	for _, object := range written {
		object.SetResourceVersion("") // of the in-memory seed
		configuration, err := applyConfiguration(object, memory.Scheme())
		if err != nil {
			return nil, err
		}
		objects = append(objects, configuration)
	}
	return objects, nil
}

// written are the objects of the extension that Deploy wrote. The namespace of Gardener itself is not the extension's.
func (e Extension) written(ctx context.Context, seed client.Client) ([]client.Object, error) {
	namespace := &corev1.Namespace{}
	if err := seed.Get(ctx, client.ObjectKey{Name: e.Namespace()}, namespace); err != nil {
		return nil, err
	}
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := seed.Get(ctx, client.ObjectKey{Namespace: GardenNamespace, Name: e.Name}, resource); err != nil {
		return nil, err
	}
	objects := []client.Object{namespace}
	for _, reference := range resource.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := seed.Get(ctx, client.ObjectKey{Namespace: GardenNamespace, Name: reference.Name}, secret); err != nil {
			return nil, err
		}
		objects = append(objects, secret)
	}
	return append(objects, resource), nil
}
