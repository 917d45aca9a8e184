//go:build e2e

package rig

import (
	"context"
	"encoding/json"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// SecondShoot is a shoot without machines. The testbed's seed is also the shoot's cluster.
type SecondShoot struct {
	*gardenlet.Gardenlet
	Namespace string
}

// SecondShoot returns a shoot that does not exist yet. The shoot is deleted when the scenario ends.
// Only one scenario at a time has a second shoot; others wait.
func (p *Run) SecondShoot(ctx context.Context, name string) SecondShoot {
	p.Helper()
	select {
	case p.Session.secondShoot <- struct{}{}: // the seed can be the cluster of one such shoot only
		p.Afterwards(ctx, func(context.Context) error {
			<-p.Session.secondShoot
			return nil
		})
	case <-ctx.Done():
		p.Fatalf("waited for another scenario to delete its second shoot: %v", context.Cause(ctx))
	}
	driver, err := gardenletOf(ctx, p.Session.Testbed, name)
	p.Check(err)
	s := SecondShoot{driver, gardenlet.Namespace(name)}
	p.Afterwards(ctx, func(ctx context.Context) error {
		namespace := &corev1.Namespace{}
		if err := p.Session.Seed.Get(ctx, client.ObjectKey{Name: s.Namespace}, namespace); err != nil {
			return client.IgnoreNotFound(err)
		}
		return s.Delete(ctx, gardenlet.NewShoot(name))
	})
	return s
}

// gardenletOf returns a gardenlet for another Shoot on the same seed and garden. The Shoot's caches
// run on the seed's node. No node has a hosts.toml for these caches, so clients must use their
// addresses. Two such Shoots at a time would conflict in the seed's kube-system.
func gardenletOf(ctx context.Context, t *kind.Testbed, name string) (*gardenlet.Gardenlet, error) {
	if name == t.Gardenlet.Name {
		return nil, fmt.Errorf("%s is the testbed's first shoot", name)
	}
	shoot, err := gardener.NewShootClient(t.Seed.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("connect to the seed as the cluster of shoot %s: %w", name, err)
	}
	if err := gardener.InstallPriorityClasses(ctx, shoot.Client()); err != nil {
		return nil, err
	}
	second := *t.Gardenlet
	second.Name = name
	second.Shoot, second.ShootKubeconfig = shoot, t.Seed.InternalKubeconfig()
	second.Machines, second.IPFamilies = nil, nil // the caches run on the seed's node, with IPv4
	return &second, nil
}

// WithCaches returns the shoot with a cache for each upstream.
func (s SecondShoot) WithCaches(hosts ...string) (*gardencorev1beta1.Shoot, error) {
	config := v1alpha3.RegistryConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: "RegistryConfig"},
		Caches:   PlainCaches(hosts...),
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the providerConfig: %w", err)
	}
	return gardenlet.NewShoot(s.Name, gardenlet.Extension(v1alpha3.ExtensionType, encoded)), nil
}

// Extension returns the Extension of the shoot.
func (s SecondShoot) Extension(ctx context.Context, p *Run) (*extensionsv1alpha1.Extension, error) {
	extension := &extensionsv1alpha1.Extension{}
	err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: v1alpha3.ExtensionType}, extension)
	return extension, err
}
