package nodeimage

import (
	"fmt"

	"golang.org/x/mod/modfile"
)

// KubernetesVersion is the version of the kubelet, kubeadm and the control plane in the image.
// modules/kubernetes/go.mod pins it; a test checks that both are equal.
const KubernetesVersion = "v1.36.2"

// ContainerdVersion is the version of containerd in the image. modules/containerd/go.mod pins it; a
// test checks that both are equal.
const ContainerdVersion = "v2.3.4"

// Images for persistent volumes. They are in the node's containerd only, not in a registry.
const (
	// LocalPathProvisionerImage provisions volumes of the default StorageClass.
	LocalPathProvisionerImage = "registry-cache.testbed/local-path-provisioner:v0.0.30"
	// HelperImage is a static busybox for local-path-provisioner's helper pods.
	HelperImage = "registry-cache.testbed/busybox:stable"
)

// versions maps module paths to the versions in a go.mod.
type versions map[string]string

// parseVersions returns the requirements of a go.mod.
func parseVersions(name string, data []byte) (versions, error) {
	file, err := modfile.ParseLax(name, data, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the pinned versions: %w", err)
	}
	v := versions{}
	for _, require := range file.Require {
		v[require.Mod.Path] = require.Mod.Version
	}
	return v, nil
}
