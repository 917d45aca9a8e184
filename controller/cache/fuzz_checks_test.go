package cache_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

var strict = serializer.NewCodecFactory(kubernetes.ShootScheme, serializer.EnableStrict).UniversalDeserializer()

// checkObject checks what every API server requires: valid metadata, and the same object after a
// round trip.
func checkObject(t *testing.T, object client.Object) {
	t.Helper()
	nameRule := validation.NameIsDNSSubdomain
	if _, ok := object.(*corev1.Service); ok {
		nameRule = validation.NameIsDNS1035Label
	}
	accessor := object.DeepCopyObject().(client.Object)
	if errs := validation.ValidateObjectMetaAccessor(accessor, true, nameRule, field.NewPath("metadata")); len(errs) > 0 {
		t.Errorf("%T %s: %v", object, object.GetName(), errs)
	}
	kind, err := apiutil.GVKForObject(object, kubernetes.ShootScheme)
	if err != nil {
		t.Fatal(err)
	}
	accessor.GetObjectKind().SetGroupVersionKind(kind)
	encoded, err := json.Marshal(accessor)
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, err := strict.Decode(encoded, nil, nil)
	if err != nil || !equality.Semantic.DeepEqual(decoded, runtime.Object(accessor)) {
		t.Errorf("%s is read as %+v, %v", encoded, decoded, err)
	}
}

// checkCache compares the objects of a cache with its configuration.
func checkCache(t *testing.T, c v1alpha3.RegistryCache, id v1alpha3.Identity, objects []client.Object, username, password []byte) {
	t.Helper()
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.Service:
			if object.Spec.ClusterIP == corev1.ClusterIPNone {
				continue // the Service for the replicas
			}
			if object.Name != id.ServiceName(&c) || object.Annotations[v1alpha3.AnnotationUpstream] != c.Upstream ||
				object.Annotations[v1alpha3.AnnotationRemoteURL] != *c.RemoteURL {
				t.Errorf("%s: service %s, annotations %v", c.Upstream, object.Name, object.Annotations)
			}
		case *appsv1.StatefulSet:
			checkStatefulSet(t, c, object)
		case *corev1.Secret:
			if config, ok := object.Data["config.yml"]; ok {
				checkConfiguration(t, c, config, username, password)
			}
		}
	}
}

func checkStatefulSet(t *testing.T, c v1alpha3.RegistryCache, set *appsv1.StatefulSet) {
	t.Helper()
	claim := set.Spec.VolumeClaimTemplates[0].Spec
	if got := claim.Resources.Requests[corev1.ResourceStorage]; got.Cmp(*c.Volume.Size) != 0 || !equality.Semantic.DeepEqual(claim.StorageClassName, c.Volume.StorageClassName) {
		t.Errorf("%s: claim %+v", c.Upstream, claim)
	}
	variables := map[string]string{}
	for _, container := range set.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			variables[variable.Name] = variable.Value
			if strings.Contains(variable.Value, "$(") || strings.ContainsAny(variable.Value, "\x00\n") {
				t.Errorf("%s: variable %s=%q", c.Upstream, variable.Name, variable.Value)
			}
		}
	}
	if proxy := c.Proxy; proxy != nil && (proxy.HTTPProxy != nil || proxy.HTTPSProxy != nil) {
		checkProxy(t, proxy, variables)
	}
}

// checkProxy compares the user's configuration with the settings that Go's HTTP client reads.
func checkProxy(t *testing.T, proxy *v1alpha3.Proxy, variables map[string]string) {
	t.Helper()
	if variables["HTTP_PROXY"] != ptr.Deref(proxy.HTTPProxy, "") || variables["HTTPS_PROXY"] != ptr.Deref(proxy.HTTPSProxy, "") {
		t.Errorf("%+v becomes %v", proxy, variables)
	}
	list := strings.Split(variables["NO_PROXY"], ",")
	for _, entry := range slices.Concat(v1alpha3.NoProxyEntries(proxy), fuzzedShoot.Networks) {
		if !slices.Contains(list, entry) {
			t.Errorf("%q is not in NO_PROXY=%s", entry, variables["NO_PROXY"])
		}
	}
}

func checkConfiguration(t *testing.T, c v1alpha3.RegistryCache, content, username, password []byte) {
	t.Helper()
	got, err := configuration.Parse(bytes.NewReader(content))
	if err != nil {
		t.Fatalf("%v:\n%s", err, content)
	}
	if c.SecretReferenceName == nil {
		username, password = nil, nil
	}
	if got.Proxy.RemoteURL != *c.RemoteURL || got.Proxy.Username != string(username) || got.Proxy.Password != string(password) ||
		got.Proxy.TTL == nil || *got.Proxy.TTL != c.GarbageCollection.TTL.Duration || got.Log.Fields["upstream"] != c.Upstream {
		t.Errorf("%s: distribution reads %+v", c.Upstream, got.Proxy)
	}
}

// checkNode compares the configuration of a node with the user's configuration.
func checkNode(t *testing.T, config *v1alpha3.RegistryConfig, bundle []byte) {
	t.Helper()
	want := map[string]nodeconfig.Registry{}
	var registries []nodeconfig.Registry
	for _, c := range config.Caches {
		registry := nodeconfig.Registry{Upstream: c.Upstream, Endpoint: "http://10.4.0.1:5000", UpstreamURL: *c.RemoteURL}
		if c.CABundleSecretReferenceName != nil {
			registry.UpstreamCA = bundle
		}
		if c.HTTP != nil && c.HTTP.TLS {
			registry.Endpoint, registry.EndpointCA = "https://[fd00:10::1]:5000", bundle
		}
		want[c.Upstream] = registry
		registries = append(registries, registry)
		checkArgument(t, registry)
	}
	got, err := nodeconfig.ParseUnit(nodeconfig.Unit(registries, 0))
	if err != nil || len(got) != len(want) {
		t.Fatalf("the unit is read as %+v, %v", got, err)
	}
	for _, registry := range got {
		if !equality.Semantic.DeepEqual(registry, want[registry.Upstream]) {
			t.Errorf("the unit is read as %+v, want %+v", registry, want[registry.Upstream])
		}
	}
}

// argumentPattern returns the pattern of the arguments that the script accepts. The script ignores
// others.
var argumentPattern = sync.OnceValue(func() *regexp.Regexp {
	pattern := func(name string) string {
		return regexp.MustCompile(`(?m)^readonly ` + name + `='(.*)'`).FindStringSubmatch(nodeconfig.Script())[1]
	}
	host := pattern("host_pattern")
	return regexp.MustCompile("^" + host + ",https?://" + host + ",https?://" + host + "(," + pattern("ca_pattern") + "){0,2}$")
})

// checkArgument checks that the script configures the registry. Its patterns allow nothing that
// could end a string in hosts.toml.
func checkArgument(t *testing.T, registry nodeconfig.Registry) {
	t.Helper()
	if argument := registry.Argument(); !argumentPattern().MatchString(argument) {
		t.Errorf("the script ignores %q", argument)
	}
}
