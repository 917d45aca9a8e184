package gardener

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// apply applies the objects in order by server-side apply as FieldManager, and takes over fields
// that others own. The error names the object that failed; the objects before it stay applied.
func apply(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		configuration, err := applyConfiguration(object, c.Scheme())
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration),
			client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", configuration.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// applyConfiguration returns the object without its status.
func applyConfiguration(object client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
	}
	configuration := &unstructured.Unstructured{Object: content}
	configuration.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(configuration.Object, "status")
	unstructured.RemoveNestedField(configuration.Object, "metadata", "creationTimestamp")
	return configuration, nil
}
