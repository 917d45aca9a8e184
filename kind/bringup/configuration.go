package bringup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// UnavailableError reports why this machine lacks what Field requires. It is an environment error.
type UnavailableError struct{ Field, Reason string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%s: not available on this machine: %s", e.Field, e.Reason)
}

// EnvironmentError marks the error for internal/program.
func (*UnavailableError) EnvironmentError() {}

// Plan returns the configuration changes that Up would apply, and whether a testbed exists.
func Plan(t *kind.Testbed) (changes []configuration.Change, up bool, err error) {
	if err := t.ConfigurationError(); err != nil {
		return nil, false, err
	}
	applied, err := kind.ReadConfiguration(t.State.AppliedConfiguration())
	if err != nil {
		return nil, false, fmt.Errorf("read the applied configuration: %w", err)
	}
	if applied == nil {
		return nil, false, nil
	}
	return configuration.Diff(applied, t.Config), true, nil
}

// storeWantedConfiguration stores the configuration before Up applies it.
func storeWantedConfiguration(t *kind.Testbed) error {
	if err := kind.WriteConfiguration(t.State.WantedConfiguration(), t.Config); err != nil {
		return fmt.Errorf("store the configuration: %w", err)
	}
	return nil
}

func recordConfiguration(_ context.Context, t *kind.Testbed) error {
	if err := kind.WriteConfiguration(t.State.AppliedConfiguration(), t.Config); err != nil {
		return fmt.Errorf("store the applied configuration: %w", err)
	}
	return nil
}

// checkAvailable returns an *UnavailableError if this machine cannot provide what the configuration
// asks for. The caller must hold the network, see cluster.HoldNetwork.
func checkAvailable(ctx context.Context, t *kind.Testbed) error {
	if t.Config.Shoot.IPFamily == configuration.IPv4 {
		return nil
	}
	reason, err := cluster.IPv6Missing(ctx, t.Engine.Local)
	if err == nil && reason != "" {
		err = &UnavailableError{Field: "shoot.ipFamily", Reason: reason}
	}
	return err
}

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

func removeUnconfiguredUpstreams(ctx context.Context, t *kind.Testbed) error {
	applied, err := kind.ReadConfiguration(t.State.AppliedConfiguration())
	if err != nil || applied == nil {
		return nil //nolint:nilerr // without a readable configuration, the upstreams stay until Down
	}
	wanted := upstreamHosts(t, t.Config)
	for _, host := range upstreamHosts(t, applied) {
		if slices.Contains(wanted, host) {
			continue
		}
		registry, err := upstream.Find(ctx, t.Prefix, host)
		if errors.Is(err, upstream.ErrNotRunning) {
			continue
		}
		if err == nil {
			err = registry.Remove(ctx)
		}
		if err != nil {
			return err
		}
		progress.Note(ctx, "%s removed", host)
	}
	return nil
}

func upstreamHosts(t *kind.Testbed, config *configuration.Testbed) []string {
	var names []string
	for _, upstream := range config.Upstreams {
		names = append(names, upstream.Name)
	}
	return t.Hosts(names)
}

// reconcileShoot deletes the garden that earlier `testbed shoot` commands have stored, and
// reconciles the configuration's Shoot.
func reconcileShoot(ctx context.Context, t *kind.Testbed) error {
	if err := os.RemoveAll(t.State.Garden()); err != nil {
		return fmt.Errorf("remove the garden of the shoot commands: %w", err)
	}
	return t.Recorder.Step(ctx, "shoot reconciled", func(ctx context.Context) (err error) {
		if t.Config.Shoot.Manifest != "" {
			return reconcileManifest(ctx, t)
		}
		var config []byte
		if t.Extension.Configure != nil {
			if config, err = t.Extension.Configure(ctx, t.CachedUpstreams()); err != nil {
				return err
			}
		}
		if config == nil {
			return t.Gardenlet.Reconcile(ctx, gardenlet.Shoot())
		}
		return t.Gardenlet.Reconcile(ctx, gardenlet.Shoot(gardenlet.Extension(t.Extension.Name, config)))
	})
}

// reconcileManifest reconciles the Shoot in the file shoot.manifest, and stores the file's Secrets
// in the garden for `testbed shoot` commands.
func reconcileManifest(ctx context.Context, t *kind.Testbed) error {
	wanted, err := operate.LoadManifest(t.Config.Shoot.Manifest)
	if err != nil {
		return fmt.Errorf("shoot.manifest: %w", err)
	}
	progress.Note(ctx, "%s", t.Relative(t.Config.Shoot.Manifest))
	registration, err := t.Extension.Registration()
	if err != nil {
		return err
	}
	if t.Gardenlet.Garden, err = gardener.OpenGarden(t.State.Garden(), registration); err != nil {
		return err
	}
	return operate.ApplyManifest(ctx, t, wanted, wanted.Overlay(gardenlet.Shoot()))
}
