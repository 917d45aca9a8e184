package bundle

import "github.com/pelletier/go-toml/v2"

// Config is what containerd's configuration says about registries. It is that of the file: containerd runs with what it found there
// when it was started.
type Config struct {
	// Path is config_path: folders with hosts.toml files, with colons between them; "" for none.
	Path string
	// Transfer says that images are pulled by the transfer service.
	Transfer bool
}

// defaultPath is what containerd 2 takes for an empty config_path, unless there are mirrors of the old kind.
const defaultPath = "/etc/containerd/certs.d:/etc/docker/certs.d"

// parseConfig reads `containerd config dump`, which prints the file as it is: what containerd makes of it when it starts is computed
// here as containerd 2.2 and 2.3 do. nil: it is empty, broken, or names no plugin for registries.
func parseConfig(dump string) *Config {
	var config struct {
		Plugins struct {
			Images *images   `toml:"io.containerd.cri.v1.images"`
			CRI    *struct { // containerd 1.7
				Registry registry `toml:"registry"`
			} `toml:"io.containerd.grpc.v1.cri"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal([]byte(dump), &config); err != nil {
		return nil
	}
	switch plugins := config.Plugins; {
	case plugins.Images != nil:
		path := plugins.Images.Registry.Path
		if path == "" && len(plugins.Images.Registry.Mirrors) == 0 {
			path = defaultPath
		}
		return &Config{Path: path, Transfer: plugins.Images.transfer()}
	case plugins.CRI != nil:
		return &Config{Path: plugins.CRI.Registry.Path}
	default:
		return nil
	}
}

// images are the settings of the plugin that pulls images.
type images struct {
	// LocalPull is nil before containerd 2.1, which knows no other way.
	LocalPull             *bool    `toml:"use_local_image_pull"`
	NoSnapshotAnnotations bool     `toml:"disable_snapshot_annotations"`
	DiscardUnpackedLayers bool     `toml:"discard_unpacked_layers"`
	SyncFS                bool     `toml:"image_pull_with_sync_fs"`
	Downloads             int      `toml:"max_concurrent_downloads"`
	Registry              registry `toml:"registry"`
}

type registry struct {
	Path    string         `toml:"config_path"`
	Mirrors map[string]any `toml:"mirrors"`
	Configs map[string]any `toml:"configs"`
	Auths   map[string]any `toml:"auths"`
}

// transfer says whether the transfer service pulls: not if it was turned off, and not with a setting that it does not know.
func (i images) transfer() bool {
	unknown := !i.NoSnapshotAnnotations || i.DiscardUnpackedLayers || i.SyncFS || i.Downloads != 3 ||
		len(i.Registry.Mirrors)+len(i.Registry.Configs)+len(i.Registry.Auths) > 0
	return i.LocalPull != nil && !*i.LocalPull && !unknown
}
