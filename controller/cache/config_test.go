package cache

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// parse parses the rendered configuration with distribution's parser.
func parse(t *testing.T, r rendering) *configuration.Configuration {
	t.Helper()
	got, err := configuration.Parse(bytes.NewReader(get[*corev1.Secret](t, r.render(t)).Data[configFile]))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestDistributionReadsTheConfiguration checks the keys, because distribution ignores unknown keys.
func TestDistributionReadsTheConfiguration(t *testing.T) {
	got := parse(t, renderings()["docker.io"])
	if got.Proxy.RemoteURL != "https://registry-1.docker.io" || got.Proxy.Username != "" || got.Proxy.Password != "" {
		t.Errorf("proxy = %+v", got.Proxy)
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
	if got.HTTP.Addr != ":5000" || got.HTTP.DrainTimeout != drainTimeout || got.HTTP.TLS.Certificate != "" {
		t.Errorf("http = %+v", got.HTTP)
	}
	if got.HTTP.Debug.Addr != ":5001" || !got.HTTP.Debug.Prometheus.Enabled || got.HTTP.Debug.Prometheus.Path != "/metrics" {
		t.Errorf("http.debug = %+v", got.HTTP.Debug)
	}
	if !got.Health.StorageDriver.Enabled || got.Health.StorageDriver.Interval != 10*time.Second || got.Health.StorageDriver.Threshold != 3 {
		t.Errorf("health.storagedriver = %+v", got.Health.StorageDriver)
	}
}

func TestDistributionReadsTheCertificate(t *testing.T) {
	got := parse(t, renderings()["tls"])
	if got.HTTP.TLS.Certificate != "/etc/registry-cache/tls/tls.crt" || got.HTTP.TLS.Key != "/etc/registry-cache/tls/tls.key" {
		t.Errorf("http.tls = %+v", got.HTTP.TLS)
	}
}

// awkward contains credentials that plain YAML changes or cannot encode.
var awkward = []string{
	"user", "@robot", "*x", "&x", "!x", "0x10", "0o17", "1e3", "1_000", "yes", "null", "~", "true", "2024-01-01", ".inf", "=", "<<", "- a", "? a",
	"a: b", "a #b", "'", `"`, `\`, "$HOME", "${X}", "%41", "{{x}}", "it's $#&:", " leading", "trailing ", "a\nb", "a\r\nb", "\n", "\t", "\x00", "\x7f",
	"\u0085", "\u2028", "\ufeffbom", "\ufffe", "pä\u00dfword", "\U0001f600", "\xff\xfe", "a\x80b", strings.Repeat("long with spaces ", 100),
}

func TestCredentialsKeepEveryByte(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, value := range append(awkward, string(every)) {
		for _, c := range []Credentials{{[]byte(value), []byte("plain")}, {[]byte("plain"), []byte(value)}, {[]byte(value), []byte(value)}} {
			checkCredentials(t, c)
		}
	}
}

func FuzzCredentials(f *testing.F) {
	for _, value := range awkward {
		f.Add([]byte(value), []byte(value))
	}
	f.Fuzz(func(t *testing.T, username, password []byte) { checkCredentials(t, Credentials{username, password}) })
}

func checkCredentials(t *testing.T, credentials Credentials) {
	t.Helper()
	r := renderings()["credentials"]
	r.secrets.Credentials = &credentials
	got := parse(t, r)
	if got.Proxy.Username != string(credentials.Username) || got.Proxy.Password != string(credentials.Password) {
		t.Errorf("distribution reads %q and %q, want %q and %q",
			got.Proxy.Username, got.Proxy.Password, credentials.Username, credentials.Password)
	}
	if got.Proxy.RemoteURL != "https://registry-1.docker.io" {
		t.Errorf("proxy.remoteurl = %q", got.Proxy.RemoteURL)
	}
}

// ownSection is the section cache of the configuration.
type ownSection struct {
	Cache struct {
		Limit int64
		ECR   struct{ AccessKeyID, SecretAccessKey, SessionToken, RoleARN string }
	}
}

func own(t *testing.T, r rendering) (secret *corev1.Secret, section ownSection) {
	t.Helper()
	secret = get[*corev1.Secret](t, r.render(t))
	if err := yaml.Unmarshal(secret.Data[configFile], &section); err != nil {
		t.Fatal(err)
	}
	return secret, section
}

// TestLimit: the cache stores at most volume.size. A larger volume changes only the file, which
// kubelet updates, and not the pod.
func TestLimit(t *testing.T) {
	r := renderings()["docker.io"]
	first, section := own(t, r)
	if section.Cache.Limit != 10<<30 {
		t.Errorf("by default, cache.limit = %d", section.Cache.Limit)
	}
	pod := get[*appsv1.StatefulSet](t, r.render(t)).Spec.Template
	for size, want := range map[string]int64{"20Gi": 20 << 30, "1048576500m": 1<<20 + 1, "8Ei": math.MaxInt64, "100Ei": math.MaxInt64} {
		r.cache.Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse(size))}
		secret, section := own(t, r)
		if section.Cache.Limit != want {
			t.Errorf("with %s, cache.limit = %d, want %d", size, section.Cache.Limit, want)
		}
		if secret.Name != first.Name || ptr.Deref(secret.Immutable, false) {
			t.Errorf("with %s, the Secret is %s, immutable %v; it was %s", size, secret.Name, secret.Immutable, first.Name)
		}
		if !reflect.DeepEqual(get[*appsv1.StatefulSet](t, r.render(t)).Spec.Template, pod) {
			t.Errorf("with %s, the pod restarts", size)
		}
	}
	r.cache.GarbageCollection = &v1alpha3.GarbageCollection{}
	if secret, _ := own(t, r); secret.Name == first.Name {
		t.Error("another TTL does not restart the pod")
	}
}

// TestAccessKeyKeepsEveryByte: only the configuration contains the access key.
func TestAccessKeyKeepsEveryByte(t *testing.T) {
	r := renderings()["ecr"]
	for _, value := range awkward {
		r.secrets.AccessKey = &AccessKey{[]byte(value), []byte(value + "1"), []byte(value + "2"), []byte(value + "3")}
		_, section := own(t, r)
		if got := section.Cache.ECR; got.AccessKeyID != value || got.SecretAccessKey != value+"1" || got.SessionToken != value+"2" || got.RoleARN != value+"3" {
			t.Errorf("the cache reads %+v, want %q", got, value)
		}
	}
	if got := parse(t, renderings()["ecr"]); got.Proxy.Username != "" || got.Proxy.Password != "" {
		t.Errorf("a stock image sends %+v", got.Proxy)
	}
}
