package nodeimage

import (
	"encoding/json"
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// registryConfig sets the only folder in which containerd looks for a registry's hosts.toml.
const registryConfig = `
# registry-cache testbed: the one folder with a hosts.toml for each registry
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
`

// containerdConfig adds registryConfig to the containerd configuration of kind's base image.
func containerdConfig(base string) (string, error) {
	config := base + registryConfig
	var parsed map[string]any
	if err := toml.Unmarshal([]byte(config), &parsed); err != nil {
		return "", fmt.Errorf("adding the registry folder to kind's configuration of containerd: %w", err)
	}
	return config, nil
}

// baseSpec adapts the output of `ctr oci spec` as the Dockerfile of kind's base image does: it adds
// the hook for the product files and removes resource limits.
func baseSpec(generated []byte) (string, error) {
	var spec map[string]any
	if err := json.Unmarshal(generated, &spec); err != nil {
		return "", fmt.Errorf("reading the output of `ctr oci spec`: %w", err)
	}
	if process, ok := spec["process"].(map[string]any); ok {
		delete(process, "rlimits")
	}
	hooks, _ := spec["hooks"].(map[string]any)
	if hooks == nil {
		hooks = map[string]any{}
	}
	existing, _ := hooks["createContainer"].([]any)
	hooks["createContainer"] = append(existing, map[string]any{"path": "/kind/bin/mount-product-files.sh"})
	spec["hooks"] = hooks
	out, err := json.MarshalIndent(spec, "", "  ")
	return string(out) + "\n", err
}
