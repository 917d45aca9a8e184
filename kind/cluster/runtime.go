package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pelletier/go-toml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Runtime configures containerd. The zero value keeps the configuration of the node image and kind.
type Runtime struct {
	// TransferService makes containerd pull with its transfer service. It also turns off kind's
	// setting discard_unpacked_layers, which that service does not support.
	TransferService bool
	// ConfigPath replaces RegistryConfigDir as the place where containerd looks for hosts.toml.
	ConfigPath string
}

const (
	runtimeConfig = "/etc/containerd/config.toml"
	// runtimeOriginal is a copy of runtimeConfig from before the first change.
	runtimeOriginal = "/kind/registry-cache-testbed-containerd.toml"
)

func (r Runtime) isDefault() bool {
	return !r.TransferService && (r.ConfigPath == "" || r.ConfigPath == RegistryConfigDir)
}

// apply returns the original configuration of containerd with the settings applied, or unchanged if
// the settings change nothing.
func (r Runtime) apply(original []byte) ([]byte, error) {
	if r.isDefault() {
		return original, nil
	}
	var config map[string]any
	if err := toml.Unmarshal(original, &config); err != nil {
		return nil, fmt.Errorf("reading containerd's configuration: %w", err)
	}
	var cri, store []string // the tables that affect pulls
	switch version := config["version"]; version {
	case int64(2):
		cri = []string{"plugins", "io.containerd.grpc.v1.cri"}
		store = append(cri, "containerd")
	case int64(3):
		cri = []string{"plugins", "io.containerd.cri.v1.images"}
		store = cri
	default:
		return nil, fmt.Errorf("containerd's configuration has version %v, want 2 or 3", version)
	}
	var err error
	if r.TransferService {
		unstructured.RemoveNestedField(config, append(slices.Clone(store), "use_local_image_pull")...)
		err = unstructured.SetNestedField(config, false, append(slices.Clone(store), "discard_unpacked_layers")...)
	}
	if err == nil && r.ConfigPath != "" {
		err = unstructured.SetNestedField(config, r.ConfigPath, append(cri, "registry", "config_path")...)
	}
	if err != nil {
		return nil, fmt.Errorf("changing containerd's configuration: %w", err)
	}
	return toml.Marshal(config)
}

// restartRuntime replaces containerd's configuration $3 with the file $1 and restarts containerd.
// It fails if containerd does not start, or if $2 is true and containerd logs that it cannot use
// its transfer service (internal/cri/config, CheckLocalImagePullConfigs). Until containerd runs
// with the new configuration, $3.pending exists, so that the next call restarts containerd again.
const restartRuntime = `
if cmp -s -- "$1" "$3" && ! [[ -e $3.pending ]]; then
  rm -f -- "$1"
  exit 0
fi
touch -- "$3.pending"
mv -fT -- "$1" "$3"
systemctl restart containerd.service
journalctl --sync
invocation=$(systemctl show --property InvocationID --value containerd.service)
if [[ $2 == true ]] && journalctl --output cat "_SYSTEMD_INVOCATION_ID=$invocation" | grep 'Falling back to local image pull' >&2; then
  exit 1
fi
rm -f -- "$3.pending"
`

// ApplyRuntime applies the settings to containerd's configuration. It restarts containerd only if
// something changed or an earlier change was interrupted. Containers keep running.
func (n *Node) ApplyRuntime(ctx context.Context, r Runtime) error {
	ctx, cancel := progress.Within(ctx, trustTimeout, "not done")
	defer cancel()
	original, err := n.ReadFile(ctx, runtimeOriginal)
	untouched := errors.Is(err, fs.ErrNotExist)
	if untouched {
		if r.isDefault() {
			return nil
		}
		original, err = n.ReadFile(ctx, runtimeConfig)
	}
	if err != nil {
		return err
	}
	wanted, err := r.apply(original)
	if err != nil {
		return err
	}
	if untouched {
		if err := n.WriteFile(ctx, runtimeOriginal, 0o644, original); err != nil {
			return err
		}
	}
	staged := runtimeConfig + ".new"
	if err := n.WriteFile(ctx, staged, 0o644, wanted); err != nil {
		return err
	}
	if _, err := n.Script(ctx, restartRuntime, staged, fmt.Sprint(r.TransferService), runtimeConfig); err != nil {
		return fmt.Errorf("changing the settings of containerd: %w", err)
	}
	return nil
}
