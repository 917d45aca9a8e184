package nodeimage

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// storageManifestFile is the manifest on the node image that kind applies to a new cluster.
	storageManifestFile = "/kind/manifests/default-storage.yaml"
	// storageDeployFile is the manifest in local-path-provisioner's module.
	storageDeployFile = "deploy/local-path-storage.yaml"
	// volumesFolder is the folder of the persistent volumes, on the volume that kind mounts at /var.
	volumesFolder = "/var/local-path-provisioner"
)

// storageManifest adapts local-path-provisioner's manifest as kind's images do: StorageClass
// `standard` is the default, volumes are below /var, the images are those on the node, and the
// provisioner tolerates control planes.
func storageManifest(upstream []byte) (string, error) {
	var out bytes.Buffer
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(upstream), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return out.String(), nil
		}
		if err != nil {
			return "", fmt.Errorf("reading local-path-provisioner's manifest: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := adaptStorage(object); err != nil {
			return "", fmt.Errorf("adapting local-path-provisioner's %s: %w", object.GetKind(), err)
		}
		document, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			return "", err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
}

func adaptStorage(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "StorageClass":
		object.SetName("standard")
		object.SetAnnotations(map[string]string{"storageclass.kubernetes.io/is-default-class": "true"})
	case "ConfigMap":
		return adaptStorageConfig(object.Object)
	case "Deployment":
		return adaptProvisioner(object.Object)
	}
	return nil
}

func adaptStorageConfig(configMap map[string]any) error {
	nodePaths := fmt.Sprintf(`{"nodePathMap":[{"node":"DEFAULT_PATH_FOR_NON_LISTED_NODES","paths":[%q]}]}`, volumesFolder)
	if err := unstructured.SetNestedField(configMap, nodePaths, "data", "config.json"); err != nil {
		return err
	}
	return unstructured.SetNestedField(configMap, helperPod, "data", "helperPod.yaml")
}

// helperPod creates and removes the folders of volumes.
const helperPod = `apiVersion: v1
kind: Pod
metadata:
  name: helper-pod
spec:
  priorityClassName: system-node-critical
  tolerations:
  - operator: Exists
  containers:
  - name: helper-pod
    image: ` + HelperImage + `
    imagePullPolicy: IfNotPresent
`

func adaptProvisioner(deployment map[string]any) error {
	pod := []string{"spec", "template", "spec"}
	containers, found, err := unstructured.NestedSlice(deployment, append(pod, "containers")...)
	if err != nil || !found || len(containers) != 1 {
		return errors.Join(err, fmt.Errorf("want one container, got %d", len(containers)))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("the container is not an object")
	}
	command, _, err := unstructured.NestedStringSlice(container, "command")
	if err != nil {
		return err
	}
	container["image"] = LocalPathProvisionerImage
	if err := unstructured.SetNestedStringSlice(container, append(command, "--helper-image", HelperImage), "command"); err != nil {
		return err
	}
	if err := unstructured.SetNestedSlice(deployment, containers, append(pod, "containers")...); err != nil {
		return err
	}
	controlPlane := map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
	return unstructured.SetNestedSlice(deployment, []any{controlPlane}, append(pod, "tolerations")...)
}
