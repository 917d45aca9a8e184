package v1alpha3_test

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

func TestReferenceValidatesByKind(t *testing.T) {
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
			t.Errorf("%s: a valid Secret is rejected: %v", r.Path, errs)
		}
		if errs := r.Validate(bad); len(errs) == 0 || errs[0].Field != r.Path.String() {
			t.Errorf("%s: an invalid Secret gives %v", r.Path, errs)
		}
	}
}

func TestReferenceValidateEntry(t *testing.T) {
	r := v1alpha3.Reference{Name: "creds", Path: field.NewPath("caches").Index(1).Child("secretReferenceName")}
	const path = `caches[1].secretReferenceName: Invalid value: "creds": `
	for name, test := range map[string]struct {
		to   autoscalingv1.CrossVersionObjectReference
		want string
	}{
		"Secret":         {autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"}, ""},
		"no entry":       {autoscalingv1.CrossVersionObjectReference{}, path + "must be the name of an entry of spec.resources"},
		"ConfigMap":      {autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "s"}, path + "must refer to a Secret of apiVersion v1, but the entry refers to a ConfigMap of apiVersion v1"},
		"other Secret":   {autoscalingv1.CrossVersionObjectReference{APIVersion: "x/v1", Kind: "Secret", Name: "s"}, path + "must refer to a Secret of apiVersion v1, but the entry refers to a Secret of apiVersion x/v1"},
		"without a kind": {autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Name: "s"}, path + "must refer to a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := r.ValidateEntry(test.to)
			if len(errs) == 0 && test.want == "" {
				return
			}
			if len(errs) != 1 || test.want == "" || !strings.HasPrefix(errs[0].Error(), test.want) {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
	for namespace, want := range map[string]string{"garden-dev": "garden-dev/s", "": "s"} {
		want = path + "refers to the Secret " + want + ", which does not exist"
		if got := r.Missing(namespace, "s").ToAggregate().Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
