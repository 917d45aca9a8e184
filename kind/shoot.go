package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/manifest"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// CachedUpstreams are the upstream hosts that have a cache in the shoot after Up; none if the configuration has a manifest, which
// says so itself.
func (t *Testbed) CachedUpstreams() []string { return t.hosts(t.config.Cached()) }

// ShootWithCaches is the testbed's shoot with a cache for each upstream host, which fetches by plain HTTP; without any
// the extension is not in the shoot.
func ShootWithCaches(hosts ...string) (*gardencorev1beta1.Shoot, error) {
	var config v1alpha3.RegistryConfig
	for _, host := range hosts {
		config.Caches = append(config.Caches, CacheOf(host))
	}
	return ShootWithConfig(config)
}

// CacheOf asks for the cache of an upstream of the testbed, which fetches by plain HTTP: everything else is the default.
func CacheOf(host string) v1alpha3.RegistryCache {
	remoteURL := "http://" + host
	return v1alpha3.RegistryCache{Upstream: host, RemoteURL: &remoteURL}
}

// ShootWithConfig is the testbed's shoot with the caches that config asks for, as it is: it is neither defaulted nor
// validated. apiVersion and kind are added if they are missing. Without caches the extension is not in the shoot.
func ShootWithConfig(config v1alpha3.RegistryConfig) (*gardencorev1beta1.Shoot, error) {
	if len(config.Caches) == 0 {
		return gardenlet.Shoot(), nil
	}
	if config.TypeMeta == (metav1.TypeMeta{}) {
		config.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: "RegistryConfig"}
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the providerConfig: %w", err)
	}
	return gardenlet.Shoot(gardenlet.Extension(ExtensionName, encoded)), nil
}

// reconcileShoot lets gardenlet bring the shoot to its first state. What the shoot commands have put into the garden belongs to
// the shoot that was there before.
func (t *Testbed) reconcileShoot(ctx context.Context) error {
	if err := os.RemoveAll(t.state.garden()); err != nil {
		return fmt.Errorf("remove the garden of the shoot commands: %w", err)
	}
	if t.config.Shoot.Manifest != "" {
		return t.recorder.Step(ctx, "shoot reconciled", t.reconcileManifest)
	}
	shoot, err := ShootWithCaches(t.CachedUpstreams()...)
	if err != nil {
		return err
	}
	return t.recorder.Step(ctx, "shoot reconciled", func(ctx context.Context) error {
		for _, host := range t.CachedUpstreams() {
			progress.Note(ctx, "cache for %s", host)
		}
		return t.gardenlet.Reconcile(ctx, shoot)
	})
}

// reconcileManifest brings the shoot to what the configuration's manifest says. Its Secrets go into the garden of the shoot commands,
// so that these find them.
func (t *Testbed) reconcileManifest(ctx context.Context) error {
	wanted, err := readManifest(t.config.Shoot.Manifest)
	if err != nil {
		return err
	}
	shoot, replaced, err := manifest.Overlay(wanted.Shoot, gardenlet.Shoot())
	if err != nil {
		return err
	}
	progress.Note(ctx, "%s, %d fields of it not used", t.relative(t.config.Shoot.Manifest), len(replaced))
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.gardenlet.Garden, err = gardener.OpenGarden(t.state.garden(), registration); err != nil {
		return err
	}
	return t.applyManifest(ctx, wanted, shoot)
}

func readManifest(path string) (*manifest.Manifest, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("shoot.manifest: %w", err)
	}
	wanted, err := manifest.Read(path, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return wanted, nil
}

// applyManifest puts the Secrets of a manifest into the garden, in the place of those of the same name, and reconciles the shoot.
func (t *Testbed) applyManifest(ctx context.Context, wanted *manifest.Manifest, shoot *gardencorev1beta1.Shoot) error {
	for _, secret := range wanted.Secrets {
		if err := t.gardenlet.StoreSecret(ctx, secret); err != nil {
			return err
		}
		progress.Note(ctx, "secret %s", secret.Name)
	}
	if err := t.gardenlet.CheckReferences(ctx, shoot); err != nil {
		return err
	}
	return t.gardenlet.Reconcile(ctx, shoot)
}
