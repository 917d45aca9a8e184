package original

import (
	"bytes"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// TestNames compares the names with those that the original was seen to use.
func TestNames(t *testing.T) {
	for _, test := range []struct{ upstream, name, label string }{
		{"docker.io", "registry-docker-io", "docker.io"},
		{"europe-docker.pkg.dev", "registry-europe-docker-pkg-dev", "europe-docker.pkg.dev"},
		{"registry.example.com:5000", "registry-registry-example-com-5000", "registry.example.com-5000"},
		{
			"a-really-long-registry-host-name.with.many.labels.example.internal.org",
			"registry-a-really-long-registry-host-name-with-7dae7", "a-really-long-registry-host-name.with-7dae7",
		},
	} {
		t.Run(test.upstream, func(t *testing.T) {
			c := cache{RegistryCache: v1alpha3.RegistryCache{Upstream: test.upstream}}
			if c.name() != test.name || c.hostLabel() != test.label {
				t.Errorf("named %s with the label %s, want %s and %s", c.name(), c.hostLabel(), test.name, test.label)
			}
			c.ServiceNameSuffix = ptr.To("gar")
			if c.name() != test.name || c.serviceName() != "registry-gar" {
				t.Errorf("with a suffix: %s, Service %s", c.name(), c.serviceName())
			}
		})
	}
}

// configured returns caches with defaults.
func configured(caches ...v1alpha3.RegistryCache) []cache {
	config := &v1alpha3.RegistryConfig{Caches: caches}
	v1alpha3.SetDefaults(config)
	var all []cache
	for _, c := range config.Caches {
		all = append(all, cache{RegistryCache: c, address: "10.4.0.1"})
	}
	return all
}

func TestObjects(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}}
	for name, test := range map[string]struct {
		cache  v1alpha3.RegistryCache
		secret *corev1.Secret
	}{
		"http": {cache: v1alpha3.RegistryCache{Upstream: "docker.io", HTTP: &v1alpha3.HTTP{}}},
		"https-replicated": {
			cache:  v1alpha3.RegistryCache{Upstream: "docker.io", HighAvailability: &v1alpha3.HighAvailability{Enabled: true}},
			secret: secret,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := configured(test.cache)[0]
			c.secret = test.secret
			objects, err := c.objects("registry:3")
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			for _, object := range append(objects, c.service(), networkPolicy()) {
				data, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				text.WriteString("---\n")
				text.Write(data)
			}
			text.WriteString("# config.yml\n" + c.configuration())
			golden.Compare(t, name+".yaml", text.Bytes())
		})
	}
}

// TestCertificates compares the name of the CA's Secret with the one that the original was seen to
// use. The name contains a hash of the CA's configuration, which includes the validity of two
// years.
func TestCertificates(t *testing.T) {
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	cluster := &extensions.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "shoot--local--local"}, Shoot: &gardencorev1beta1.Shoot{},
	}
	caches := configured(v1alpha3.RegistryCache{Upstream: "docker.io"}, v1alpha3.RegistryCache{Upstream: "ghcr.io", HTTP: &v1alpha3.HTTP{}})
	extension := Extension{Seed: seed, Log: logr.Discard()}
	bundle, err := extension.issue(t.Context(), cluster, caches)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(bundle.Name, "ca-extension-registry-cache-bundle-") {
		t.Errorf("the bundle is Secret %s", bundle.Name)
	}
	if caches[0].secret == nil || caches[1].secret != nil {
		t.Errorf("the certificates are %v and %v, want one for HTTPS only", caches[0].secret, caches[1].secret)
	}
	ca := &corev1.Secret{}
	if err := seed.Get(t.Context(), client.ObjectKey{Namespace: cluster.ObjectMeta.Name, Name: "ca-extension-registry-cache-0ebe6dfd"}, ca); err != nil {
		t.Error(err)
	}
	status, err := providerStatus(caches, bundle)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "status.json", strings.Replace(string(status.Raw), bundle.Name, "NAME", 1)+"\n")
}

// TestReconcileOnlyIfAsked: the Extension is left alone unless gardenlet has set its annotation.
func TestReconcileOnlyIfAsked(t *testing.T) {
	extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--local--local", Name: "registry-cache"}}
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(extension).Build()
	for _, namespace := range []string{extension.Namespace, "shoot--local--none"} {
		if err := (Extension{Seed: seed}).Reconcile(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(extension), extension); err != nil || len(extension.Finalizers) > 0 {
		t.Errorf("the Extension has the finalizers %v, %v", extension.Finalizers, err)
	}
}

func TestAdmissionPolicy(t *testing.T) {
	caches := configured(v1alpha3.RegistryCache{Upstream: "docker.io"}, v1alpha3.RegistryCache{Upstream: "ghcr.io", HTTP: &v1alpha3.HTTP{}})
	caches[1].address = "2001:db8::1"
	policy, binding := admissionPolicy("shoot--local--local", registries(caches), []byte("a bundle"))
	var text bytes.Buffer
	for _, object := range []any{policy, binding} {
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	golden.Compare(t, "webhook.yaml", text.Bytes())
}

// TestLifetimes: as with the original, a CA is valid for two years and a certificate for 90 days.
func TestLifetimes(t *testing.T) {
	if caValidity != 17520*time.Hour || serverValidity != 2160*time.Hour {
		t.Errorf("valid for %s and %s", caValidity, serverValidity)
	}
}
