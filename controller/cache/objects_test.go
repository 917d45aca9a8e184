package cache

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const image = "registry.example/registry-cache:v1"

func defaulted(cache v1alpha3.RegistryCache) v1alpha3.RegistryCache {
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{cache}}
	v1alpha3.SetDefaults(config)
	return config.Caches[0]
}

func TestObjectsGolden(t *testing.T) {
	for name, cache := range map[string]v1alpha3.RegistryCache{
		"docker.io": {Upstream: "docker.io"},
		"everything-set": {
			Upstream:          "alpha-1.upstream.test:5443",
			RemoteURL:         ptr.To("http://alpha.upstream.test"),
			Volume:            &v1alpha3.Volume{Size: ptr.To(resource.MustParse("1Gi")), StorageClassName: ptr.To("fast")},
			GarbageCollection: &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: 90 * time.Minute}},
		},
		"no-garbage-collection": {
			Upstream:          strings.Repeat("a123456789.", 22) + "example.com",
			GarbageCollection: &v1alpha3.GarbageCollection{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(defaulted(cache), Shoot{Image: image}, Secrets{})
			if err != nil {
				t.Fatal(err)
			}
			got := serialize(t, objects)
			golden.Compare(t, name+".yaml", got)
		})
	}
}

// serialize writes the objects as YAML, the configuration of the registry as readable lines before its Secret.
func serialize(t *testing.T, objects []client.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok {
			out.WriteString("# " + configFile + "\n")
			for line := range strings.Lines(string(secret.Data[configFile])) {
				out.WriteString("# " + line)
			}
		}
		kind, err := apiutil.GVKForObject(object, kubernetes.ShootScheme)
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		content, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(content)
		out.WriteString("---\n")
	}
	return out.Bytes()
}

// TestDistributionReadsTheConfiguration guards the keys: distribution ignores the ones it does not know.
func TestDistributionReadsTheConfiguration(t *testing.T) {
	cache := defaulted(v1alpha3.RegistryCache{Upstream: "docker.io"})
	secret, err := configSecret(cache)
	if err != nil {
		t.Fatal(err)
	}
	got, err := configuration.Parse(bytes.NewReader(secret.Data[configFile]))
	if err != nil {
		t.Fatal(err)
	}
	if got.Proxy.RemoteURL != "https://registry-1.docker.io" {
		t.Errorf("proxy.remoteurl = %q", got.Proxy.RemoteURL)
	}
	if got.Proxy.TTL == nil || *got.Proxy.TTL != v1alpha3.DefaultTTL {
		t.Errorf("proxy.ttl = %v", got.Proxy.TTL)
	}
	if got.Storage.Type() != "filesystem" || got.Storage.Parameters()["rootdirectory"] != volumeMountPath {
		t.Errorf("storage = %v", got.Storage)
	}
	if deletion, ok := got.Storage["delete"]; !ok || deletion["enabled"] != true {
		t.Errorf("storage.delete = %v", got.Storage["delete"])
	}
	if tag := got.Storage.TagParameters(); tag["concurrencylimit"] != concurrentTagLookups {
		t.Errorf("storage.tag = %v", tag)
	}
	if _, cached := got.Storage["cache"]; cached {
		t.Error("storage.cache is set")
	}
	if got.HTTP.Addr != ":5000" || got.HTTP.DrainTimeout != drainTimeout {
		t.Errorf("http = %+v", got.HTTP)
	}
	if got.HTTP.Debug.Addr != ":5001" || !got.HTTP.Debug.Prometheus.Enabled || got.HTTP.Debug.Prometheus.Path != "/metrics" {
		t.Errorf("http.debug = %+v", got.HTTP.Debug)
	}
	if !got.Health.StorageDriver.Enabled || got.Health.StorageDriver.Interval != 10*time.Second || got.Health.StorageDriver.Threshold != 3 {
		t.Errorf("health.storagedriver = %+v", got.Health.StorageDriver)
	}
}

func TestChangedConfigurationRollsThePod(t *testing.T) {
	cache := defaulted(v1alpha3.RegistryCache{Upstream: "docker.io"})
	before := podTemplate(t, cache)
	cache.GarbageCollection.TTL.Duration = time.Hour
	if after := podTemplate(t, cache); after.Spec.Volumes[0].Secret.SecretName == before.Spec.Volumes[0].Secret.SecretName {
		t.Errorf("the pod template still names Secret %s", after.Spec.Volumes[0].Secret.SecretName)
	}
}

func podTemplate(t *testing.T, cache v1alpha3.RegistryCache) corev1.PodTemplateSpec {
	t.Helper()
	objects, err := Objects(cache, Shoot{Image: image}, Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if set, ok := object.(*appsv1.StatefulSet); ok {
			return *set.Spec.Template.DeepCopy()
		}
	}
	t.Fatal("no StatefulSet among the objects")
	return corev1.PodTemplateSpec{}
}

func TestObjectsRefusesWhatIsIncomplete(t *testing.T) {
	if _, err := Objects(v1alpha3.RegistryCache{Upstream: "docker.io"}, Shoot{Image: image}, Secrets{}); err == nil {
		t.Error("no error for a cache without defaults")
	}
	if _, err := Objects(defaulted(v1alpha3.RegistryCache{Upstream: "docker.io"}), Shoot{}, Secrets{}); err == nil {
		t.Error("no error for an empty image")
	}
}
