package diagnostics

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// resources are listed in both clusters. A resource that a cluster does not serve is skipped.
var resources = []schema.GroupVersionResource{
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "extensions"},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "operatingsystemconfigs"},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "workers"},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "clusters"},
	{Group: "resources.gardener.cloud", Version: "v1alpha1", Resource: "managedresources"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "persistentvolumes"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
}

func collectObjects(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, into *Folder) {
	file := "objects/" + resource.Resource + ".yaml"
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		into.Fail(file, err)
		return
	}
	if len(list.Items) == 0 {
		return
	}
	var out bytes.Buffer
	for _, object := range list.Items {
		content, err := yaml.Marshal(presentable(object).Object)
		if err != nil {
			into.Fail(file, fmt.Errorf("%s/%s: %w", object.GetNamespace(), object.GetName(), err))
			continue
		}
		out.WriteString("---\n")
		out.Write(content)
	}
	into.Write(file, out.Bytes())
}

// presentable returns a copy of the object without managed fields. Of the data of a Secret it keeps
// only the sizes.
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
