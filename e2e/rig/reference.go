//go:build e2e

package rig

import (
	"context"
	"crypto/rand"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// References are the Shoot's spec.resources: the garden's Secret for each name that a cache can
// refer to.
type References map[string]string

// Shoot returns the shoot with these caches and references.
func (r References) Shoot(caches ...v1alpha3.RegistryCache) (*gardencorev1beta1.Shoot, error) {
	shoot, err := operate.ShootWithConfig(v1alpha3.RegistryConfig{Caches: caches})
	if err != nil {
		return nil, err
	}
	for name, secret := range r {
		shoot = gardenlet.WithSecret(shoot, name, secret)
	}
	return shoot, nil
}

// Secret creates an immutable Secret in the garden, until the scenario ends, and returns its name.
// change may be nil.
func (p *Run) Secret(ctx context.Context, data map[string][]byte, change func(*corev1.Secret)) string {
	p.Helper()
	immutable := true
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardenlet.ProjectNamespace, Name: "e2e-" + strings.ToLower(rand.Text()[:10])},
		Type:       corev1.SecretTypeOpaque,
		Immutable:  &immutable,
		Data:       data,
	}
	if change != nil {
		change(secret)
	}
	garden := p.Session.Testbed.Gardenlet
	p.Check(garden.Garden.Create(ctx, secret))
	p.Afterwards(ctx, func(ctx context.Context) error { return garden.RemoveSecret(ctx, secret.Name) })
	return secret.Name
}

// Upstream starts an additional upstream, until the scenario ends.
func (p *Run) Upstream(ctx context.Context, options upstream.Options) *upstream.Registry {
	p.Helper()
	registry, err := p.Session.Testbed.StartUpstream(ctx, options)
	p.Check(err)
	p.Afterwards(ctx, func(ctx context.Context) error { return p.Session.Testbed.StopUpstream(ctx, registry) })
	return registry
}
