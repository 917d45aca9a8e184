package registry

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"             // auth: htpasswd
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // storage: filesystem
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"   // storage: inmemory
)

// defaultDrainTimeout is how long requests may go on after the stop signal when http.draintimeout is not configured. It
// is less than the 30 s after which Kubernetes kills a container.
const defaultDrainTimeout = 25 * time.Second

// defaultRoot is distribution's, for a configuration without rootdirectory.
const defaultRoot = "/var/lib/registry"

// storeFolder returns the folder in which the registry stores, as distribution reads the setting; "" if it does not store in a folder.
func storeFolder(config *configuration.Configuration) string {
	if config.Storage.Type() != "filesystem" {
		return ""
	}
	if root, set := config.Storage.Parameters()["rootdirectory"]; set {
		return fmt.Sprint(root)
	}
	return defaultRoot
}

// Load reads a configuration file of distribution v3; environment variables of the form REGISTRY_PROXY_REMOTEURL
// override it.
func Load(file string) (*configuration.Configuration, error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer func() { _ = content.Close() }()
	config, err := configuration.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the configuration %s: %w", file, err)
	}
	if _, err := url.Parse(config.Proxy.RemoteURL); err != nil {
		return nil, fmt.Errorf("configuration %s: proxy.remoteurl is no URL", file) // the cause would repeat it, and what is secret in it
	}
	return config, nil
}
