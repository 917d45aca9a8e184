//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const referenceField = "caches[2].secretReferenceName"

// badSecrets are Secrets that a user may refer to by mistake, with a word that the error must have beside the field.
var badSecrets = []struct {
	name   string
	data   map[string][]byte
	change func(*corev1.Secret)
	word   string
}{
	{"mutable", map[string][]byte{"username": []byte("u"), "password": []byte("hidden-word")},
		func(s *corev1.Secret) { s.Immutable = nil }, "immutable"},
	{"wrong-keys", map[string][]byte{"user": []byte("u"), "password": []byte("hidden-word")}, nil, "username"},
	{"too-many-keys", map[string][]byte{"username": []byte("u"), "password": []byte("hidden-word"), "email": []byte("e")}, nil, "email"},
	{"empty-password", map[string][]byte{"username": []byte("u"), "password": {}}, nil, "password"},
}

// proveBadSecretsRefused proves that each bad Secret puts the Extension in Error, with the field and the cause and no
// content of the Secret, and that the caches stay as they are. The last cache refers to the Secret.
func proveBadSecretsRefused(ctx context.Context, p *scenarioRun, refer references, caches []v1alpha3.RegistryCache) {
	p.Helper()
	before := stateOfCaches(ctx, p, upstreams(caches)...)
	// The Shoot refers to all of them all the time: gardener-resource-manager waits five seconds after each copy that it deletes.
	all := maps.Clone(refer)
	for _, bad := range badSecrets {
		all[bad.name] = p.Secret(ctx, bad.data, bad.change)
	}
	for _, bad := range badSecrets {
		refusedFor(ctx, p, all, caches, bad.name, bad.word)
	}
	refusedFor(ctx, p, all, caches, "nowhere", "nowhere")
	if after := stateOfCaches(ctx, p, upstreams(caches)...); after != before {
		p.Fatalf("a bad Secret changed something:\nbefore:\n%s\nafter:\n%s", before, after)
	}
	p.Configure(ctx, all, caches...)
	// Only spec.resources changes now: the providerConfig stays.
	name := *caches[len(caches)-1].SecretReferenceName
	all[name] = all[badSecrets[0].name]
	refusedFor(ctx, p, all, caches, name, badSecrets[0].word)
	p.Evidence("%d bad Secrets: Error with field path", len(badSecrets)+2)
}

// refusedFor proves that the Extension is in Error when the last cache uses the reference.
func refusedFor(ctx context.Context, p *scenarioRun, refer references, caches []v1alpha3.RegistryCache, reference, word string) {
	p.Helper()
	caches = slices.Clone(caches)
	caches[len(caches)-1].SecretReferenceName = ptr.To(reference)
	shoot, err := refer.shoot(caches...)
	p.Check(err)
	if message := refusedShoot(ctx, p, shoot, referenceField, word); strings.Contains(message, "hidden-word") {
		p.Fatalf("reference %s: lastError shows what is in the Secret: %s", reference, message)
	}
}
