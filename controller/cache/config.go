package cache

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"time"

	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// drainTimeout is how long running pulls may go on before the process exits. It is shorter than
	// the default grace period of a pod (30 s), so that a stock image can still write its scheduler
	// state (gardener-extension-registry-cache#162).
	drainTimeout = 25 * time.Second

	// concurrentTagLookups is how many lookups at once the driver sustains on a small volume.
	concurrentTagLookups = 5
)

// registryConfig is the configuration file of a cache (registry.Load): the keys of distribution
// that our image or a stock one needs
// (https://distribution.github.io/distribution/about/configuration/), and the section cache. A key
// is the name of its field in lower case.
type registryConfig struct {
	Version string
	Log     struct {
		Level  string
		Fields map[string]string
	}
	// Storage sets no blob descriptor cache. With such a cache, distribution would still know blobs
	// that its garbage collection has deleted, and would answer requests for them with status 200 and
	// an empty body (distribution#2367, #4191).
	Storage struct {
		Filesystem map[string]string
		Delete     map[string]bool
		Tag        map[string]int
	}
	HTTP struct {
		Addr, DrainTimeout string
		Debug              map[string]any
		Headers            map[string][]string
		TLS                map[string]string `yaml:",omitempty"`
	}
	Health map[string]any
	Proxy  struct {
		RemoteURL string
		Username  binary `yaml:",omitempty"`
		Password  binary `yaml:",omitempty"`
		TTL       string
	}
	// Cache contains the keys of our image (package registry). A stock image ignores them.
	Cache struct {
		Upstream string
		Peers    string     `yaml:",omitempty"`
		Owned    bool       // the volume belongs to the cache, even if a stock image without a TTL has filled it
		Limit    int64      // volume.size: the file system can be larger
		ECR      *AccessKey `yaml:",omitempty"`
	}
}

// binary is a string of arbitrary bytes. It is encoded as base64 with the tag !!binary, which
// distribution's parser decodes to the same bytes. Plain and quoted scalars cannot contain bytes
// that are not UTF-8, and YAML changes some values, such as 0x10 or line breaks.
type binary []byte

// MarshalYAML implements yaml.Marshaler.
func (b binary) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: base64.StdEncoding.EncodeToString(b)}, nil
}

func newRegistryConfig(cache v1alpha3.RegistryCache, id v1alpha3.Identity, secrets Secrets) registryConfig {
	config := registryConfig{Version: "0.1"}
	config.Log.Level, config.Log.Fields = "info", map[string]string{"service": "registry", "upstream": cache.Upstream}
	config.Storage.Filesystem = map[string]string{"rootdirectory": volumeMountPath}
	config.Storage.Delete = map[string]bool{"enabled": true} // otherwise expired blobs of a stock image stay on the volume (distribution#4957)
	config.Storage.Tag = map[string]int{"concurrencylimit": concurrentTagLookups}
	config.HTTP.Addr, config.HTTP.DrainTimeout = fmt.Sprintf(":%d", v1alpha3.CachePort), drainTimeout.String()
	config.HTTP.Debug = map[string]any{
		"addr":       fmt.Sprintf(":%d", v1alpha3.CacheDebugPort),
		"prometheus": map[string]any{"enabled": true, "path": "/metrics"},
	}
	config.HTTP.Headers = map[string][]string{"X-Content-Type-Options": {"nosniff"}}
	if ServesTLS(cache) {
		config.HTTP.TLS = map[string]string{"certificate": certificateDir + "/" + corev1.TLSCertKey, "key": certificateDir + "/" + corev1.TLSPrivateKeyKey}
	}
	config.Health = map[string]any{"storagedriver": map[string]any{"enabled": true, "interval": "10s", "threshold": 3}}
	config.Proxy.RemoteURL, config.Proxy.TTL = *cache.RemoteURL, cache.GarbageCollection.TTL.Duration.String()
	if credentials := secrets.Credentials; credentials != nil {
		config.Proxy.Username, config.Proxy.Password = credentials.Username, credentials.Password
	}
	config.Cache.Upstream, config.Cache.Owned, config.Cache.ECR = cache.Upstream, true, secrets.AccessKey
	if isHighlyAvailable(cache) {
		config.Cache.Peers = fmt.Sprintf("%s.%s.svc:%d", peersName(id), metav1.NamespaceSystem, v1alpha3.CachePort)
	}
	return config
}

// render returns the content of the configuration file.
func (c registryConfig) render() []byte {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	utilruntime.Must(encoder.Encode(c)) // neither a buffer nor encoding these types can fail
	return out.Bytes()
}

// Paths and file names in the pod, apart from the cache's volume.
const (
	configDir      = "/etc/distribution"
	configFile     = "config.yml"
	certificateDir = "/etc/registry-cache/tls"
	caBundleDir    = "/etc/registry-cache/ca"
	caBundleFile   = "bundle.crt"
)

// readableByGroup is the mode of mounted files. The pod's group owns them.
const readableByGroup int32 = 0o440

// mountedObject is a Secret or ConfigMap that the pod mounts in dir.
type mountedObject struct {
	volume, dir string
	object      client.Object
}

// mountedObjects returns the configuration, the certificate (with http.tls) and the CA bundle (if
// there is one). The name of each object ends in a hash of its content. So each change, from a TTL
// to the certificate, changes the pod template and restarts the pod. The exception is cache.limit:
// a volume grows while the cache serves. So the hash excludes it, the Secret is not immutable, and
// the cache reads the limit again from the file, which kubelet updates.
func mountedObjects(cache v1alpha3.RegistryCache, id v1alpha3.Identity, secrets Secrets) []mountedObject {
	config := newRegistryConfig(cache, id, secrets)
	config.Cache.Limit = -1 // any value but 0: without a limit, the name is that of an earlier version's Secret
	secret := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{configFile: config.render()}}
	mounted := []mountedObject{{"config", configDir, secret}}
	if ServesTLS(cache) {
		mounted = append(mounted, mountedObject{"tls", certificateDir, &corev1.Secret{
			Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: secrets.Certificate.Certificate, corev1.TLSPrivateKeyKey: secrets.Certificate.PrivateKey},
		}})
	}
	if len(secrets.CABundle) > 0 {
		bundle := &corev1.ConfigMap{Data: map[string]string{caBundleFile: string(secrets.CABundle)}}
		mounted = append(mounted, mountedObject{"ca", caBundleDir, bundle})
	}
	for _, m := range mounted {
		meta := objectMeta(id)
		m.object.SetName(meta.Name + "-" + m.volume)
		m.object.SetNamespace(meta.Namespace)
		m.object.SetLabels(meta.Labels)
		utilruntime.Must(kubernetesutils.MakeUnique(m.object))
	}
	config.Cache.Limit = cache.Volume.Size.Value()
	secret.Data[configFile], secret.Immutable = config.render(), nil
	return mounted
}

func volumesAndMounts(mounted []mountedObject) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, m := range mounted {
		source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: m.object.GetName(), DefaultMode: new(readableByGroup)}}
		if _, isConfigMap := m.object.(*corev1.ConfigMap); isConfigMap {
			source = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: m.object.GetName()},
				DefaultMode:          new(readableByGroup),
			}}
		}
		volumes = append(volumes, corev1.Volume{Name: m.volume, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: m.volume, MountPath: m.dir, ReadOnly: true})
	}
	return volumes, mounts
}
