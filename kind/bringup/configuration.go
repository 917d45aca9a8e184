package bringup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
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

// Plan returns what Up would change in a testbed that is there, and changes nothing. It goes by what Up has recorded; parts that are
// dead are repaired besides. Up says whether there is a testbed.
func Plan(t *kind.Testbed) (changes []configuration.Change, up bool, err error) {
	if err := t.ConfigurationError(); err != nil {
		return nil, false, err
	}
	applied, err := kind.ReadConfiguration(t.State.AppliedConfiguration())
	if err != nil {
		return nil, false, fmt.Errorf("read what the testbed is: %w", err)
	}
	if applied == nil {
		return nil, false, nil
	}
	return configuration.Diff(applied, t.Config), true, nil
}

// rememberConfiguration writes down what the testbed is to be, before anything is changed for it: an Up after an interruption goes
// on with it. What this machine cannot carry is not remembered.
func rememberConfiguration(t *kind.Testbed) error {
	if err := kind.WriteConfiguration(t.State.WantedConfiguration(), t.Config); err != nil {
		return fmt.Errorf("write down the configuration: %w", err)
	}
	return nil
}

// recordConfiguration writes down what the testbed is now, when all of it has been brought about.
func recordConfiguration(_ context.Context, t *kind.Testbed) error {
	if err := kind.WriteConfiguration(t.State.AppliedConfiguration(), t.Config); err != nil {
		return fmt.Errorf("write down what the testbed is: %w", err)
	}
	return nil
}

// checkAvailable says whether this machine can carry what is asked for. The network has to be held.
func checkAvailable(ctx context.Context, t *kind.Testbed) error {
	if t.Config.Shoot.IPFamily == configuration.IPv4 {
		return nil
	}
	reason, err := cluster.IPv6Missing(ctx, t.Engine.Local)
	if err == nil && reason != "" {
		err = &Unavailable{Field: "shoot.ipFamily", Reason: reason}
	}
	return err
}

// shootConfig is what the shoot cluster is made from.
func shootConfig(t *kind.Testbed) cluster.Config {
	settings := t.Config.Shoot
	config := clusterConfig(t, t.ShootName(), *settings.Workers, t.State.ShootKubeconfig())
	config.IPFamily = cluster.IPFamily(settings.IPFamily)
	config.FeatureGates = settings.FeatureGates
	config.KubeProxyMode = string(settings.KubeProxyMode)
	config.Runtime = cluster.Runtime{
		TransferService: settings.Containerd.Pull == configuration.PullTransfer,
		ConfigPath:      settings.Containerd.ConfigPath,
	}
	return config
}

// dropUpstreams removes those upstreams that the configuration before had and this one does not. Those that somebody else has
// started stay.
func dropUpstreams(ctx context.Context, t *kind.Testbed) error {
	applied, err := kind.ReadConfiguration(t.State.AppliedConfiguration())
	if err != nil || applied == nil {
		return nil //nolint:nilerr // what cannot be read cannot be compared; the upstreams stay until Down
	}
	var dropped []string
	for _, upstream := range applied.Upstreams {
		dropped = append(dropped, upstream.Name)
	}
	wanted := t.ConfiguredHosts()
	for _, host := range t.Hosts(dropped) {
		if slices.Contains(wanted, host) {
			continue
		}
		registry, err := upstream.Find(ctx, t.Prefix, host)
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
