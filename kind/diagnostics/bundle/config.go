package bundle

import "github.com/pelletier/go-toml/v2"

// Config is what containerd's configuration says about registries. It is that of the file: containerd runs with what it found there
// when it was started.
type Config struct {
	// Path is config_path: folders with hosts.toml files, with colons between them; "" for none.
	Path string
	// Transfer says that images are pulled by the transfer service, as they are by default since containerd 2.1.
	Transfer bool
}

// parseConfig reads `containerd config dump`. nil: it is empty, broken, or names no plugin for registries.
func parseConfig(dump string) *Config {
	type registry struct {
		Path string `toml:"config_path"`
	}
	var config struct {
		Plugins struct {
			Images *struct {
				LocalPull bool     `toml:"use_local_image_pull"`
				Registry  registry `toml:"registry"`
			} `toml:"io.containerd.cri.v1.images"`
			CRI *struct { // containerd 1.7
				Registry registry `toml:"registry"`
			} `toml:"io.containerd.grpc.v1.cri"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal([]byte(dump), &config); err != nil {
		return nil
	}
	switch plugins := config.Plugins; {
	case plugins.Images != nil:
		return &Config{Path: plugins.Images.Registry.Path, Transfer: !plugins.Images.LocalPull}
	case plugins.CRI != nil:
		return &Config{Path: plugins.CRI.Registry.Path}
	default:
		return nil
	}
}
