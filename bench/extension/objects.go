package extension

import (
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// Name is the name and also the type of each shoot's Extension.
const Name = v1alpha3.ExtensionType

const kubernetesMinor = "1.36"

const providerConfig = `{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":[` +
	`{"upstream":"docker.io","volume":{"size":"20Gi"},"http":{}},{"upstream":"ghcr.io","volume":{"size":"20Gi"},"http":{}}]}`

func shootName(i int) string { return fmt.Sprintf("s%04d", i) }

// namespaceOf returns the name of the i-th shoot's namespace.
func namespaceOf(i int) string { return gardenlet.Namespace(shootName(i)) }

// namespaces returns the namespaces of the shoots whose index is at least from and less than to.
func namespaces(from, to int) map[string]bool {
	all := map[string]bool{}
	for i := from; i < to; i++ {
		all[namespaceOf(i)] = true
	}
	return all
}

func shootNamespace(i int) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i), Labels: map[string]string{
		v1beta1constants.GardenRole:         v1beta1constants.GardenRoleShoot,
		"extensions.gardener.cloud/" + Name: "true",
	}}}
}

// kubeconfigSecret returns the Secret with the kubeconfig that the extension uses.
func kubeconfigSecret(i int, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(i), Name: v1beta1constants.SecretNameGardenerInternal},
		Data:       map[string][]byte{kubernetes.KubeConfig: kubeconfig},
	}
}

func extension(i int) *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(i), Name: Name},
		Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type:           Name,
			ProviderConfig: &runtime.RawExtension{Raw: []byte(providerConfig)},
		}},
	}
}

// cluster returns the Cluster of the i-th shoot: its Shoot, CloudProfile and Seed.
func cluster(i int) *extensionsv1alpha1.Cluster {
	return &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)},
		Spec: extensionsv1alpha1.ClusterSpec{
			Shoot:        runtime.RawExtension{Object: shoot(i)},
			CloudProfile: runtime.RawExtension{Object: cloudProfile()},
			Seed:         &runtime.RawExtension{Object: &gardencorev1beta1.Seed{TypeMeta: typeMeta("Seed")}},
		},
	}
}

func shoot(i int) *gardencorev1beta1.Shoot {
	shoot := gardenlet.NewShoot(shootName(i), gardencorev1beta1.Extension{Type: Name})
	shoot.Spec.Kubernetes.Version = kubernetesMinor + ".2"
	shoot.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
	return shoot
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: kind}
}

// cloudProfile returns the largest part of every Cluster. The CloudProfile of a large provider
// contains hundreds of machine types, about 60 KiB.
func cloudProfile() *gardencorev1beta1.CloudProfile {
	profile := &gardencorev1beta1.CloudProfile{TypeMeta: typeMeta("CloudProfile"), ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
	for i := range 350 {
		profile.Spec.MachineTypes = append(profile.Spec.MachineTypes, machineType(i))
	}
	return profile
}

func machineType(i int) gardencorev1beta1.MachineType {
	return gardencorev1beta1.MachineType{
		Name: fmt.Sprintf("m%d.%dxlarge", i/10, i%10+1),
		CPU:  resource.MustParse("4"), GPU: resource.MustParse("0"), Memory: resource.MustParse("16Gi"),
		Architecture: ptr.To("amd64"), Usable: ptr.To(true),
		Storage: &gardencorev1beta1.MachineTypeStorage{Class: "standard", Type: "gp3", StorageSize: ptr.To(resource.MustParse("50Gi"))},
	}
}

// operatingSystemConfig returns the OperatingSystemConfig of the i-th shoot's worker pool. It is as
// large as one that gardenlet renders for a shoot with a few private CAs.
func operatingSystemConfig(i int) *extensionsv1alpha1.OperatingSystemConfig {
	config := &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceOf(i), Name: "gardener-node-agent-" + gardenlet.WorkerPool + "-original",
			Labels: map[string]string{v1beta1constants.LabelWorkerPool: gardenlet.WorkerPool},
		},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "gardenlinux"},
			Purpose:     extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
			CRIConfig:   &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD},
		},
	}
	for i := range 7 {
		config.Spec.Units = append(config.Spec.Units, extensionsv1alpha1.Unit{
			Name: fmt.Sprintf("unit-%d.service", i), Content: ptr.To(strings.Repeat("Environment=A=b\n", 32)),
		})
	}
	for i := range 10 {
		config.Spec.Files = append(config.Spec.Files, extensionsv1alpha1.File{
			Path:    fmt.Sprintf("/var/lib/file-%d", i),
			Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: strings.Repeat("line of a file\n", 240)}},
		})
	}
	return config
}
