//go:build e2e

package nodeless

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/certificate"
)

const referenceField = "caches[2].secretReferenceName"

// badSecrets are plausible mistakes in a Secret. The error must contain the field and the word.
var badSecrets = []struct {
	name   string
	data   map[string][]byte
	change func(*corev1.Secret)
	word   string
}{
	{"mutable", map[string][]byte{"username": []byte("u"), "password": []byte("hidden-word")},
		func(s *corev1.Secret) { s.Immutable = nil }, "immutable"},
	{"wrong-keys", map[string][]byte{"user": []byte("u"), "password": []byte("hidden-word")}, nil, `lacks the key "username"`},
	{"too-many-keys", map[string][]byte{"username": []byte("u"), "password": []byte("hidden-word"), "email": []byte("e")}, nil, `but has "email"`},
	{"empty-password", map[string][]byte{"username": []byte("u"), "password": {}}, nil, `empty value for the key "password"`},
}

// badReference proves that a bad Secret is refused, and that no cache changes. The error contains
// the field and the cause, but no content of the Secret. The Secrets contain the credentials or the
// CA bundle of an upstream.
func badReference() rig.Scenario {
	refer := rig.References{}
	cache := v1alpha3.RegistryCache{
		Upstream: rig.Private, RemoteURL: ptr.To("https://" + rig.Private),
		SecretReferenceName: ptr.To("first"), CABundleSecretReferenceName: ptr.To("ca"),
		HTTP: &v1alpha3.HTTP{},
	}
	caches := []v1alpha3.RegistryCache{cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta), cache}
	var before string
	return rig.New("bad-reference",
		rig.Prove("a cache has credentials and a CA bundle", func(ctx context.Context, p *rig.Run) {
			ca, err := certificate.New("e2e private CA")
			p.Check(err)
			refer["first"] = p.Secret(ctx, map[string][]byte{"username": []byte("u"), "password": []byte("p")}, nil)
			refer["ca"] = p.Secret(ctx, map[string][]byte{"bundle.crt": ca.PEM()}, nil)
			configure(ctx, p, refer, caches...)
			before = everything(ctx, p)
		}),

		rig.Prove("bad Secrets are refused, and no cache changes", func(ctx context.Context, p *rig.Run) {
			// The Shoot always contains all references, to save time: if one were removed,
			// gardener-resource-manager would wait five seconds after the deletion of the Secret's copy.
			for _, bad := range badSecrets {
				refer[bad.name] = p.Secret(ctx, bad.data, bad.change)
			}
			for _, bad := range badSecrets {
				refusedFor(ctx, p, refer, caches, bad.name, bad.word)
			}
			refusedFor(ctx, p, refer, caches, "nowhere", "nowhere")
			proveSame(ctx, p, before)
			p.Evidence("%d bad Secrets: Error with field path", len(badSecrets)+1)
		}),

		rig.Prove("a bad Secret under the same reference is refused, and no cache changes", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, refer, caches...)
			proveSame(ctx, p, before)
			// Now only spec.resources changes, not the providerConfig.
			all := maps.Clone(refer)
			all["first"] = refer[badSecrets[0].name]
			refusedFor(ctx, p, all, caches, "first", badSecrets[0].word)
			proveSame(ctx, p, before)
			p.Evidence("same reference, bad Secret: Error with field path")
		}),

		rig.Prove("an invalid CA bundle is refused, and no cache changes", func(ctx context.Context, p *rig.Run) {
			all := maps.Clone(refer)
			all["ca"] = p.Secret(ctx, map[string][]byte{"bundle.crt": []byte("none")}, nil)
			shoot, err := p.Session.ShootWith(all, caches...)
			p.Check(err)
			p.Refused(ctx, shoot, "caches[2].caBundleSecretReferenceName", "PEM")
			proveSame(ctx, p, before)
			p.Evidence("CA bundle not PEM: Error with field path")
		}),

		rig.Prove("good Secrets fix the Extension", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, refer, caches...)
			proveSame(ctx, p, before)
			p.Evidence("nothing changed")
		}),
	)
}

// refusedFor proves that the Extension goes into Error when the last cache uses the reference, with
// a message that contains the word.
func refusedFor(ctx context.Context, p *rig.Run, refer rig.References, caches []v1alpha3.RegistryCache, reference, word string) {
	p.Helper()
	caches = slices.Clone(caches)
	caches[len(caches)-1].SecretReferenceName = ptr.To(reference)
	shoot, err := p.Session.ShootWith(refer, caches...)
	p.Check(err)
	if message := p.Refused(ctx, shoot, referenceField, word); strings.Contains(message, "hidden-word") {
		p.Fatalf("reference %s: lastError shows content of the Secret: %s", reference, message)
	}
}
