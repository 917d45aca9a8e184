package diagnostics

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// resources lists the resources that are collected from each cluster that serves them.
var resources = slices.Concat(
	group("extensions.gardener.cloud/v1alpha1", "extensions", "operatingsystemconfigs", "workers", "clusters"),
	group("resources.gardener.cloud/v1alpha1", "managedresources"),
	group("apps/v1", "deployments", "statefulsets", "daemonsets"),
	group("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
	group("discovery.k8s.io/v1", "endpointslices"),
	group("networking.k8s.io/v1", "networkpolicies"),
	group("storage.k8s.io/v1", "storageclasses"),
	group("/v1", "namespaces", "nodes", "pods", "services", "persistentvolumes", "persistentvolumeclaims", "configmaps", "secrets"),
)

func group(groupVersion string, names ...string) (all []schema.GroupVersionResource) {
	group, version, _ := strings.Cut(groupVersion, "/")
	for _, name := range names {
		all = append(all, schema.GroupVersionResource{Group: group, Version: version, Resource: name})
	}
	return all
}

func collectObjects(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, into *Folder) {
	file := "objects/" + resource.Resource + ".yaml"
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		into.Fail(file, err)
	}
	if err != nil || len(list.Items) == 0 {
		return
	}
	var out bytes.Buffer
	for _, object := range list.Items {
		content, err := yaml.Marshal(presentable(object).Object)
		if err != nil {
			into.Fail(file, fmt.Errorf("%s/%s: %w", object.GetNamespace(), object.GetName(), err))
			continue
		}
		out.WriteString("---\n" + string(content))
	}
	into.Write(file, out.Bytes())
}

// presentable returns a copy of the object without managed fields and kubectl's annotation. In a
// Secret, it replaces each value by its size.
func presentable(object unstructured.Unstructured) unstructured.Unstructured {
	shown := *object.DeepCopy()
	shown.SetManagedFields(nil)
	unstructured.RemoveNestedField(shown.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if shown.GetKind() != "Secret" {
		return shown
	}
	for _, field := range []string{"data", "stringData"} {
		data, _, _ := unstructured.NestedMap(shown.Object, field)
		for key, value := range data {
			text, _ := value.(string)
			data[key] = fmt.Sprintf("(%d characters left out)", len(text))
		}
		if data != nil {
			shown.Object[field] = data
		}
	}
	return shown
}
