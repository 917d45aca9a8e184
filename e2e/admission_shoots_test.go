//go:build e2e

package e2e

import (
	"context"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// credentialsReference is the name in spec.resources that caches refer to.
const credentialsReference = "credentials"

// change changes a Shoot before it is sent.
type change func(p *rig.Run, shoot *gardencorev1beta1.Shoot)

// shoot returns a Shoot with changes, and the label by which Gardener's API server marks Shoots with the extension.
func (g *gardenStandIn) shoot(p *rig.Run, name string, changes ...change) *gardencorev1beta1.Shoot {
	p.Helper()
	shoot := gardenlet.Named(name)
	shoot.Namespace, shoot.Labels = g.namespace, admissionLabels()
	for _, change := range changes {
		change(p, shoot)
	}
	return shoot
}

func admissionLabels() map[string]string {
	return map[string]string{v1beta1constants.LabelExtensionExtensionTypePrefix + rig.ExtensionName: "true"}
}

// update sends the Shoot with changes to what is stored now, and returns the API server's answer; an error leaves the Shoot
// as it is stored.
func (g *gardenStandIn) update(ctx context.Context, p *rig.Run, shoot *gardencorev1beta1.Shoot, changes ...change) error {
	p.Helper()
	p.Check(g.Get(ctx, client.ObjectKeyFromObject(shoot), shoot))
	changed := shoot.DeepCopy()
	for _, change := range changes {
		change(p, changed)
	}
	if err := g.Update(ctx, changed); err != nil {
		return err
	}
	*shoot = *changed
	return nil
}

// configuredAs gives a Shoot the caches of this JSON.
func configuredAs(caches string) change {
	return func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions = []gardencorev1beta1.Extension{gardenlet.Extension(rig.ExtensionName, providerConfig(caches))}
	}
}

// withCache gives a Shoot one cache with these fields.
func withCache(fields func(*v1alpha3.RegistryCache)) change {
	return func(p *rig.Run, shoot *gardencorev1beta1.Shoot) {
		cache := operate.CacheOf(rig.Alpha)
		fields(&cache)
		configured, err := operate.ShootWithConfig(v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{cache}})
		p.Check(err)
		shoot.Spec.Extensions = configured.Spec.Extensions
	}
}

func withVolume(size string) change {
	return withCache(func(cache *v1alpha3.RegistryCache) {
		cache.Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse(size))}
	})
}

func withCredentials(p *rig.Run, shoot *gardencorev1beta1.Shoot) {
	withCache(func(cache *v1alpha3.RegistryCache) { cache.SecretReferenceName = ptr.To(credentialsReference) })(p, shoot)
}

// refersTo lets spec.resources lead to the Secret.
func refersTo(secret string) change {
	return func(_ *rig.Run, shoot *gardencorev1beta1.Shoot) {
		*shoot = *gardenlet.WithSecret(shoot, credentialsReference, secret)
	}
}

func (g *gardenStandIn) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name}}
}

func (g *gardenStandIn) makeSecret(ctx context.Context, p *rig.Run, name string, immutable bool) {
	p.Helper()
	secret := g.secret(name)
	secret.Immutable = ptr.To(immutable)
	secret.Data = map[string][]byte{v1alpha3.KeyUsername: []byte("user"), v1alpha3.KeyPassword: []byte("password")}
	p.Check(g.Create(ctx, secret))
}

// denied proves that the webhook refused a request, and that its answer has all of these words.
func denied(p *rig.Run, what string, err error, words ...string) {
	p.Helper()
	for _, word := range append(words, "denied the request") {
		if err == nil || !strings.Contains(err.Error(), word) {
			p.Fatalf("%s: want a refusal by the webhook that says %q, got: %v", what, word, err)
		}
	}
}
