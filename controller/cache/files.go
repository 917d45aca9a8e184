package cache

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

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

// mountedObject is an immutable Secret or ConfigMap that the pod mounts in dir.
type mountedObject struct {
	volume, dir string
	object      client.Object
}

// mountedObjects returns the configuration, the certificate (with http.tls) and the CA bundle (if
// there is one). The name of each object ends in a hash of its content. So each change, from a TTL
// to the certificate, changes the pod template and restarts the pod.
func mountedObjects(cache v1alpha3.RegistryCache, secrets Secrets) ([]mountedObject, error) {
	config, err := newRegistryConfig(cache, secrets.Credentials).render()
	if err != nil {
		return nil, err
	}
	mounted := []mountedObject{{"config", configDir, &corev1.Secret{
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{configFile: config},
	}}}
	if ServesTLS(cache) {
		mounted = append(mounted, mountedObject{"tls", certificateDir, &corev1.Secret{
			Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{
				corev1.TLSCertKey:       secrets.Certificate.Certificate,
				corev1.TLSPrivateKeyKey: secrets.Certificate.PrivateKey,
			},
		}})
	}
	if len(secrets.CABundle) > 0 {
		mounted = append(mounted, mountedObject{"ca", caBundleDir, &corev1.ConfigMap{
			Data: map[string]string{caBundleFile: string(secrets.CABundle)},
		}})
	}
	for _, m := range mounted {
		meta := objectMeta(cache.Upstream)
		m.object.SetName(meta.Name + "-" + m.volume)
		m.object.SetNamespace(meta.Namespace)
		m.object.SetLabels(meta.Labels)
		if err := kubernetesutils.MakeUnique(m.object); err != nil {
			return nil, fmt.Errorf("naming %s of upstream %s: %w", m.object.GetName(), cache.Upstream, err)
		}
	}
	return mounted, nil
}

func volumesAndMounts(mounted []mountedObject) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, m := range mounted {
		source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  m.object.GetName(),
			DefaultMode: ptr.To(readableByGroup),
		}}
		if _, isConfigMap := m.object.(*corev1.ConfigMap); isConfigMap {
			source = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: m.object.GetName()},
				DefaultMode:          ptr.To(readableByGroup),
			}}
		}
		volumes = append(volumes, corev1.Volume{Name: m.volume, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: m.volume, MountPath: m.dir, ReadOnly: true})
	}
	return volumes, mounts
}
