package storage

import (
	"encoding/json"
	"fmt"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"
)

// volumesDir lies on the volume that kind gives each node for /var, not on the container's overlay file system.
const volumesDir = "/var/local-path-provisioner"

const setup = `#!/bin/sh
set -eu
mkdir -m 0777 -p "$VOL_DIR"
`

const teardown = `#!/bin/sh
set -eu
rm -rf "$VOL_DIR"
`

// configMap returns the configuration that local-path-provisioner reads, and watches, by these four keys.
func configMap(helper string) (*corev1.ConfigMapApplyConfiguration, error) {
	paths, err := json.Marshal(map[string]any{
		"nodePathMap": []map[string]any{{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": []string{volumesDir}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the provisioner's paths: %w", err)
	}
	pod, err := yaml.Marshal(helperPod(helper))
	if err != nil {
		return nil, fmt.Errorf("encoding the provisioner's helper pod: %w", err)
	}
	return corev1.ConfigMap(config, Namespace).WithData(map[string]string{
		"config.json":    string(paths),
		"setup":          setup,
		"teardown":       teardown,
		"helperPod.yaml": string(pod),
	}), nil
}

// helperPod is the pod that makes and removes a volume's directory on its node.
func helperPod(image string) *core.Pod {
	return &core.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "helper-pod"},
		Spec: core.PodSpec{
			PriorityClassName: "system-node-critical",
			Tolerations:       []core.Toleration{{Operator: core.TolerationOpExists}},
			Containers:        []core.Container{{Name: "helper-pod", Image: image, ImagePullPolicy: core.PullIfNotPresent}},
		},
	}
}
