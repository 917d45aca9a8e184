package nodeimage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// Images for persistent volumes. They are not in a registry but only in the node's containerd.
const (
	// localPathImage is the image of the provisioner of the default StorageClass.
	localPathImage = "registry-cache.testbed/local-path-provisioner:v0.0.30"
	// helperImage is the image of a static busybox for local-path-provisioner's helper pods.
	helperImage = "registry-cache.testbed/busybox:stable"
)

// storage returns the manifest in the module folder of local-path-provisioner, adapted as in kind's
// images: StorageClass `standard` is the default, volumes are below /var, the images are those on
// the node, and the provisioner tolerates control planes. kind applies the file that storage
// returns to a new cluster.
func storage(localPathDir string) (filetree.Entry, error) {
	upstream, err := os.ReadFile(filepath.Join(localPathDir, "deploy/local-path-storage.yaml"))
	if err != nil {
		return filetree.Entry{}, err
	}
	manifest, err := storageManifest(upstream)
	return filetree.Text("/kind/manifests/default-storage.yaml", manifest), err
}

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
		// kind mounts a volume at /var. gardener-node-agent's first run restarts the kubelet: a helper
		// pod then takes up to 30 s, or fails, and the provisioner would wait for it for two minutes.
		const config = `{"nodePathMap":[{"node":"DEFAULT_PATH_FOR_NON_LISTED_NODES","paths":["/var/local-path-provisioner"]}],"cmdTimeoutSeconds":60}`
		return errors.Join(
			unstructured.SetNestedField(object.Object, config, "data", "config.json"),
			unstructured.SetNestedField(object.Object, helperPod, "data", "helperPod.yaml"),
		)
	case "Deployment":
		return adaptProvisioner(object.Object)
	}
	return nil
}

// helperPod is the manifest of the pods that create and remove the folders of volumes.
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
    image: ` + helperImage + `
    imagePullPolicy: IfNotPresent
`

func adaptProvisioner(deployment map[string]any) error {
	pod := []string{"spec", "template", "spec"}
	found, _, err := unstructured.NestedFieldNoCopy(deployment, append(pod, "containers")...)
	containers, _ := found.([]any)
	if err != nil || len(containers) != 1 {
		return errors.Join(err, fmt.Errorf("want one container, got %d", len(containers)))
	}
	container, ok := containers[0].(map[string]any) // not a copy: changes apply to the Deployment
	if !ok {
		return errors.New("the container is not an object")
	}
	command, _, err := unstructured.NestedStringSlice(container, "command")
	if err != nil {
		return err
	}
	container["image"] = localPathImage
	if err := unstructured.SetNestedStringSlice(container, append(command, "--helper-image", helperImage), "command"); err != nil {
		return err
	}
	controlPlane := map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
	return unstructured.SetNestedSlice(deployment, []any{controlPlane}, append(pod, "tolerations")...)
}
