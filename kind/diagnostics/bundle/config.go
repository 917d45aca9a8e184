package bundle

import "github.com/pelletier/go-toml/v2"

// Config is the registry configuration in containerd's configuration file. The running containerd
// may use an older configuration, because it reads the file only at its start.
type Config struct {
	// Path is config_path: folders with hosts.toml files, separated by colons.
	Path string
	// Transfer is true if the transfer service pulls images.
	Transfer bool
}

// defaultPath is what containerd 2 uses for an empty config_path, unless the deprecated setting
// "mirrors" is used.
const defaultPath = "/etc/containerd/certs.d:/etc/docker/certs.d"

// parseConfig parses the output of `containerd config dump`. The output lacks the defaults that
// containerd 2.2 and 2.3 set at start, so parseConfig sets the default path. It returns nil if the
// output does not configure a CRI image plugin.
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

type images struct {
	// LocalPull is nil for containerd before 2.1. These versions always pull locally.
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

// transfer reports whether the transfer service pulls images. Otherwise containerd pulls locally:
// if LocalPull is nil or true, or if the transfer service does not support another setting.
func (i images) transfer() bool {
	unsupported := !i.NoSnapshotAnnotations || i.DiscardUnpackedLayers || i.SyncFS || i.Downloads != 3 ||
		len(i.Registry.Mirrors)+len(i.Registry.Configs)+len(i.Registry.Auths) > 0
	return i.LocalPull != nil && !*i.LocalPull && !unsupported
}
