package v1alpha3_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func TestReferences(t *testing.T) {
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "a.test"},
		{Upstream: "b.test", SecretReferenceName: new("creds"), CABundleSecretReferenceName: new("ca")},
		{Upstream: "c.test", SecretReferenceName: new("creds")},
	}}
	var got []string
	for _, r := range v1alpha3.References(config) {
		got = append(got, strings.Join([]string{r.Name, r.Upstream, string(r.Kind), r.Path.String()}, " "))
	}
	want := []string{
		"creds b.test credentials caches[1].secretReferenceName",
		"ca b.test CA bundle caches[1].caBundleSecretReferenceName",
		"creds c.test credentials caches[2].secretReferenceName",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReferenceValidatesByItsKind(t *testing.T) {
	credentials := secret(new(true), map[string]string{"username": "u", "password": "p"})
	bundle := secret(new(true), map[string]string{"bundle.crt": certificate(t)})
	for _, r := range v1alpha3.References(&v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "b.test", SecretReferenceName: new("creds"), CABundleSecretReferenceName: new("ca")},
	}}) {
		good, bad := credentials, bundle
		if r.Kind == v1alpha3.ReferenceCABundle {
			good, bad = bundle, credentials
		}
		if errs := r.Validate(good); len(errs) > 0 {
			t.Errorf("%s: a good Secret is refused: %v", r.Path, errs)
		}
		if errs := r.Validate(bad); len(errs) == 0 || errs[0].Field != r.Path.String() {
			t.Errorf("%s: a bad Secret gives %v", r.Path, errs)
		}
	}
}
