package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// Unavailable says that what the configuration asks for cannot be had on this machine. It counts as a matter of the environment
// (internal/program).
type Unavailable struct {
	// Field is the path of the field that asks for it, Reason why it cannot be had.
	Field, Reason string
}

// Error names the field and the reason.
func (e *Unavailable) Error() string {
	return fmt.Sprintf("%s: not on this machine: %s", e.Field, e.Reason)
}

// EnvironmentError marks the error for internal/program.
func (*Unavailable) EnvironmentError() {}

// configure sets what the testbed is to be: what was asked for, else what Up was told before, else the default.
func (t *Testbed) configure(asked *configuration.Testbed, nodeImage string) {
	t.config = asked
	if asked == nil {
		t.config, t.unreadable = readConfiguration(t.state.wantedConfiguration())
	}
	if t.config == nil {
		t.config = configuration.Default()
	}
	if nodeImage != "" && nodeImage != t.config.NodeImage {
		t.config = t.config.WithNodeImage(nodeImage)
	}
	t.override = t.config.NodeImage
}

// readConfiguration returns nil where there is no file.
func readConfiguration(path string) (*configuration.Testbed, error) {
	read, err := configuration.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return read, err
}

// writeConfiguration replaces a file as a whole.
func writeConfiguration(path string, config *configuration.Testbed) error {
	data, err := config.Encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return file.Replace(path, data, 0o644)
}

// Configuration is what the testbed is, or is to be: what the options say, else what Up was told before, else the default.
func (t *Testbed) Configuration() *configuration.Testbed { return t.config }

// Plan returns what Up would change in a testbed that is there, and changes nothing. It goes by what Up has recorded; parts that are
// dead are repaired besides. Up says whether there is a testbed.
func (t *Testbed) Plan() (changes []configuration.Change, up bool, err error) {
	if err := t.ConfigurationError(); err != nil {
		return nil, false, err
	}
	applied, err := readConfiguration(t.state.appliedConfiguration())
	if err != nil {
		return nil, false, fmt.Errorf("read what the testbed is: %w", err)
	}
	if applied == nil {
		return nil, false, nil
	}
	return configuration.Diff(applied, t.config), true, nil
}

// ConfigurationError says why the configuration of the testbed cannot be read; nil if it can.
func (t *Testbed) ConfigurationError() error {
	if t.unreadable == nil {
		return nil
	}
	return fmt.Errorf("the configuration of the testbed that is there cannot be read: name one by `testbed up -f FILE`: %w", t.unreadable)
}

// rememberConfiguration writes down what the testbed is to be, before anything is changed for it: an Up after an interruption goes
// on with it. What this machine cannot carry is not remembered.
func (t *Testbed) rememberConfiguration() error {
	if err := writeConfiguration(t.state.wantedConfiguration(), t.config); err != nil {
		return fmt.Errorf("write down the configuration: %w", err)
	}
	return nil
}

// recordConfiguration writes down what the testbed is now, when all of it has been brought about.
func (t *Testbed) recordConfiguration(context.Context) error {
	if err := writeConfiguration(t.state.appliedConfiguration(), t.config); err != nil {
		return fmt.Errorf("write down what the testbed is: %w", err)
	}
	return nil
}

// checkAvailable says whether this machine can carry what is asked for. The network has to be held.
func (t *Testbed) checkAvailable(ctx context.Context) error {
	if t.config.Shoot.IPFamily == configuration.IPv4 {
		return nil
	}
	reason, err := cluster.IPv6Missing(ctx, t.engine.Local)
	if err == nil && reason != "" {
		err = &Unavailable{Field: "shoot.ipFamily", Reason: reason}
	}
	return err
}

// shootConfig is what the shoot cluster is made from.
func (t *Testbed) shootConfig() cluster.Config {
	settings := t.config.Shoot
	config := t.clusterConfig(t.shootName(), *settings.Workers, t.state.shootKubeconfig())
	config.IPFamily = cluster.IPFamily(settings.IPFamily)
	config.FeatureGates = settings.FeatureGates
	config.KubeProxyMode = string(settings.KubeProxyMode)
	config.Runtime = cluster.Runtime{
		TransferService: settings.Containerd.Pull == configuration.PullTransfer,
		ConfigPath:      settings.Containerd.ConfigPath,
	}
	return config
}

// ipFamilies are the shoot's, in Gardener's words.
func (t *Testbed) ipFamilies() []gardencorev1beta1.IPFamily {
	switch t.config.Shoot.IPFamily {
	case configuration.IPv6:
		return []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv6}
	case configuration.DualStack:
		return []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6}
	default:
		return []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4}
	}
}

// hosts returns the hosts of upstreams with these names.
func (t *Testbed) hosts(names []string) []string {
	hosts := make([]string, 0, len(names))
	for _, name := range names {
		hosts = append(hosts, upstream.Host(t.prefix, name))
	}
	return hosts
}

// configuredHosts are the hosts of the upstreams that Up starts.
func (t *Testbed) configuredHosts() []string {
	var names []string
	for _, upstream := range t.config.Upstreams {
		names = append(names, upstream.Name)
	}
	return t.hosts(names)
}

// dropUpstreams removes those upstreams that the configuration before had and this one does not. Those that somebody else has
// started stay.
func (t *Testbed) dropUpstreams(ctx context.Context) error {
	applied, err := readConfiguration(t.state.appliedConfiguration())
	if err != nil || applied == nil {
		return nil //nolint:nilerr // what cannot be read cannot be compared; the upstreams stay until Down
	}
	var dropped []string
	for _, upstream := range applied.Upstreams {
		dropped = append(dropped, upstream.Name)
	}
	wanted := t.configuredHosts()
	for _, host := range t.hosts(dropped) {
		if slices.Contains(wanted, host) {
			continue
		}
		registry, err := upstream.Find(ctx, t.prefix, host)
		if errors.Is(err, upstream.ErrNotRunning) {
			continue
		}
		if err != nil {
			return err
		}
		if err := registry.Remove(ctx); err != nil {
			return err
		}
		progress.Note(ctx, "%s removed", host)
	}
	return nil
}
