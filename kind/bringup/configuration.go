package bringup

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
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

// EnvironmentError marks the error as an environment error, see internal/program.
func (*UnavailableError) EnvironmentError() {}

// checkAvailable returns an *UnavailableError if this machine cannot provide what the configuration
// asks for. The network must exist, see cluster.EnsureNetwork.
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
	config.Image = t.ShootImage
	config.IPFamily = v1alpha4.ClusterIPFamily(settings.IPFamily)
	config.FeatureGates = settings.FeatureGates
	config.KubeProxyMode = v1alpha4.ProxyMode(settings.KubeProxyMode)
	config.TransferService = settings.Containerd.Pull == configuration.PullTransfer
	config.ConfigPath = settings.Containerd.ConfigPath
	return config
}

// removeOtherUpstreams removes upstreams that are not in the configuration, such as those of a
// killed scenario.
func removeOtherUpstreams(ctx context.Context, t *kind.Testbed) error {
	all, err := upstream.List(ctx, t.Prefix)
	if err != nil {
		return err
	}
	for _, registry := range all {
		if slices.Contains(upstreamHosts(t), registry.Host()) {
			continue
		}
		if err := registry.Remove(ctx); err != nil {
			return err
		}
		progress.Note(ctx, "%s removed", registry.Host())
	}
	return nil
}

func upstreamHosts(t *kind.Testbed) []string {
	var names []string
	for _, upstream := range t.Config.Upstreams {
		names = append(names, upstream.Name)
	}
	return t.Hosts(names)
}

// reconcileShoot reconciles the configuration's Shoot.
func reconcileShoot(ctx context.Context, t *kind.Testbed) (err error) {
	if t.Config.Shoot.Manifest != "" {
		wanted, err := operate.LoadManifest(t.Config.Shoot.Manifest)
		if err != nil {
			return fmt.Errorf("shoot.manifest: %w", err)
		}
		progress.Note(ctx, "%s", t.Relative(t.Config.Shoot.Manifest))
		return operate.ApplyManifest(ctx, t, wanted, wanted.Overlay(gardenlet.Shoot()))
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
}
