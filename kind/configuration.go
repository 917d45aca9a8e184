package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// configure sets what the testbed is to be: what was asked for, else what Up was told before, else the default.
func (t *Testbed) configure(asked *configuration.Testbed, nodeImage string) {
	t.Config = asked
	if asked == nil {
		t.Config, t.Unreadable = ReadConfiguration(t.State.WantedConfiguration())
	}
	if t.Config == nil {
		t.Config = configuration.Default()
	}
	if nodeImage != "" && nodeImage != t.Config.NodeImage {
		t.Config = t.Config.WithNodeImage(nodeImage)
	}
	t.Override = t.Config.NodeImage
}

// readConfiguration returns nil where there is no file.
func ReadConfiguration(path string) (*configuration.Testbed, error) {
	read, err := configuration.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return read, err
}

// writeConfiguration replaces a file as a whole.
func WriteConfiguration(path string, config *configuration.Testbed) error {
	data, err := config.Encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return file.Replace(path, data, 0o644)
}

// ConfigurationError says why the configuration of the testbed cannot be read; nil if it can.
func (t *Testbed) ConfigurationError() error {
	if t.Unreadable == nil {
		return nil
	}
	return fmt.Errorf("the configuration of the testbed that is there cannot be read: name one by `testbed up -f FILE`: %w", t.Unreadable)
}

// ipFamilies are the shoot's, in Gardener's words.
func (t *Testbed) ipFamilies() []gardencorev1beta1.IPFamily {
	switch t.Config.Shoot.IPFamily {
	case configuration.IPv6:
		return []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv6}
	case configuration.DualStack:
		return []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6}
	default:
		return []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4}
	}
}

// hosts returns the hosts of upstreams with these names.
func (t *Testbed) Hosts(names []string) []string {
	hosts := make([]string, 0, len(names))
	for _, name := range names {
		hosts = append(hosts, upstream.Host(t.Prefix, name))
	}
	return hosts
}

// configuredHosts are the hosts of the upstreams that Up starts.
func (t *Testbed) ConfiguredHosts() []string {
	var names []string
	for _, upstream := range t.Config.Upstreams {
		names = append(names, upstream.Name)
	}
	return t.Hosts(names)
}

// CachedUpstreams are the upstream hosts that have a cache in the shoot after Up; none if the configuration has a manifest, which
// says so itself.
func (t *Testbed) CachedUpstreams() []string { return t.Hosts(t.Config.Cached()) }
