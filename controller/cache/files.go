package cache

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Paths, file names and volume names in the pod, apart from the cache's own volume.
const (
	configDir  = "/etc/distribution"
	configFile = "config.yml"

	certificateDir = "/etc/registry-cache/tls"

	caBundleDir  = "/etc/registry-cache/ca"
	caBundleFile = "bundle.crt"

	configVolumeName      = "config"
	certificateVolumeName = "tls"
	caBundleVolumeName    = "ca"
)

// readableByGroup is the mode of mounted files. The pod's group owns them.
const readableByGroup int32 = 0o440

// files are the immutable Secrets and ConfigMap that the pod mounts. The name of each ends in a
// hash of its content. So each change, from a TTL to the certificate, changes the pod template and
// restarts the pod.
type files struct {
	config      *corev1.Secret
	certificate *corev1.Secret    // nil without http.tls
	caBundle    *corev1.ConfigMap // nil without a CA bundle
}

func newFiles(cache v1alpha3.RegistryCache, secrets Secrets) (files, error) {
	config, err := newRegistryConfig(cache, secrets.Credentials).render()
	if err != nil {
		return files{}, err
	}
	f := files{config: secret(cache.Upstream, configVolumeName, corev1.SecretTypeOpaque, map[string][]byte{configFile: config})}
	if ServesTLS(cache) {
		f.certificate = secret(cache.Upstream, certificateVolumeName, corev1.SecretTypeTLS, map[string][]byte{
			corev1.TLSCertKey:       secrets.Certificate.Certificate,
			corev1.TLSPrivateKeyKey: secrets.Certificate.PrivateKey,
		})
	}
	if len(secrets.CABundle) > 0 {
		f.caBundle = &corev1.ConfigMap{
			ObjectMeta: fileMeta(cache.Upstream, caBundleVolumeName),
			Data:       map[string]string{caBundleFile: string(secrets.CABundle)},
		}
	}
	for _, object := range f.objects() {
		if err := kubernetesutils.MakeUnique(object); err != nil {
			return files{}, fmt.Errorf("naming %s of upstream %s: %w", object.GetName(), cache.Upstream, err)
		}
	}
	return f, nil
}

func secret(upstream, suffix string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: fileMeta(upstream, suffix), Type: kind, Data: data}
}

func fileMeta(upstream, suffix string) metav1.ObjectMeta {
	meta := objectMeta(upstream)
	meta.Name += "-" + suffix
	return meta
}

func (f files) objects() []client.Object {
	objects := []client.Object{f.config}
	if f.certificate != nil {
		objects = append(objects, f.certificate)
	}
	if f.caBundle != nil {
		objects = append(objects, f.caBundle)
	}
	return objects
}

func (f files) volumes() []corev1.Volume {
	volumes := []corev1.Volume{secretVolume(configVolumeName, f.config)}
	if f.certificate != nil {
		volumes = append(volumes, secretVolume(certificateVolumeName, f.certificate))
	}
	if f.caBundle != nil {
		volumes = append(volumes, corev1.Volume{
			Name: caBundleVolumeName,
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: f.caBundle.Name},
				DefaultMode:          ptr.To(readableByGroup),
			}},
		})
	}
	return volumes
}

func secretVolume(name string, secret *corev1.Secret) corev1.Volume {
	return corev1.Volume{
		Name: name,
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  secret.Name,
			DefaultMode: ptr.To(readableByGroup),
		}},
	}
}

func (f files) mounts() []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: configVolumeName, MountPath: configDir, ReadOnly: true}}
	if f.certificate != nil {
		mounts = append(mounts, corev1.VolumeMount{Name: certificateVolumeName, MountPath: certificateDir, ReadOnly: true})
	}
	if f.caBundle != nil {
		mounts = append(mounts, corev1.VolumeMount{Name: caBundleVolumeName, MountPath: caBundleDir, ReadOnly: true})
	}
	return mounts
}
