package extension

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/gardener/gardener/imagevector"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/containerd"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/journald"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/kernelconfig"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/kubelet"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/rootcertificates"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/sshdensurer"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/varlibkubeletmount"
	imagevectorutils "github.com/gardener/gardener/pkg/utils/imagevector"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Name is the name and also the type of each shoot's Extension.
const Name = v1alpha3.ExtensionType

const (
	namespacePrefix = "shoot--bench--"
	kubernetesMinor = "1.36"
	poolName        = "worker"
)

const providerConfig = `{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":[` +
	`{"upstream":"docker.io","volume":{"size":"20Gi"},"http":{}},{"upstream":"ghcr.io","volume":{"size":"20Gi"},"http":{}}]}`

// namespaceOf returns the name of the i-th shoot's namespace.
func namespaceOf(i int) string { return fmt.Sprintf("%ss%04d", namespacePrefix, i) }

// isShoot reports whether the namespace with this name belongs to a shoot.
func isShoot(name string) bool { return strings.HasPrefix(name, namespacePrefix) }

func shootNamespace(i int) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i), Labels: map[string]string{
		v1beta1constants.GardenRole:         v1beta1constants.GardenRoleShoot,
		"extensions.gardener.cloud/" + Name: "true",
	}}}
}

// kubeconfigSecrets returns the two Secrets with kubeconfigs of the shoot: one for the API server's
// address inside the seed, which the extension uses, and one for the external address.
func kubeconfigSecrets(i int, kubeconfig []byte) []client.Object {
	var both []client.Object
	for _, name := range []string{v1beta1constants.SecretNameGardenerInternal, v1beta1constants.SecretNameGardener} {
		both = append(both, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(i), Name: name},
			Data:       map[string][]byte{kubernetes.KubeConfig: kubeconfig},
		})
	}
	return both
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
func cluster(i int) (*extensionsv1alpha1.Cluster, error) {
	parts := make([]runtime.RawExtension, 0, 3)
	for _, part := range []any{shoot(i), cloudProfile(), seed()} {
		raw, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("encoding the Cluster of shoot %d: %w", i, err)
		}
		parts = append(parts, runtime.RawExtension{Raw: raw})
	}
	return &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)},
		Spec:       extensionsv1alpha1.ClusterSpec{Shoot: parts[0], CloudProfile: parts[1], Seed: &parts[2]},
	}, nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: kind}
}

func shoot(i int) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		TypeMeta:   typeMeta("Shoot"),
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-bench", Name: fmt.Sprintf("s%04d", i), Generation: 1},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile: &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "bench"},
			Kubernetes: gardencorev1beta1.Kubernetes{
				Version: kubernetesMinor + ".2", VerticalPodAutoscaler: &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true},
			},
			Networking: &gardencorev1beta1.Networking{
				Type: ptr.To("cilium"), Pods: ptr.To("10.96.0.0/11"), Nodes: ptr.To("10.250.0.0/16"), Services: ptr.To("10.64.0.0/13"),
				IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4},
			},
			Purpose:    ptr.To(gardencorev1beta1.ShootPurposeProduction),
			Region:     "region-1",
			Extensions: []gardencorev1beta1.Extension{{Type: Name}},
			Provider: gardencorev1beta1.Provider{Type: "bench", Workers: []gardencorev1beta1.Worker{{
				Name: poolName, Minimum: 3, Maximum: 10, Machine: gardencorev1beta1.Machine{Type: machineType(0).Name},
			}}},
			SeedName: ptr.To("bench"),
		},
		Status: gardencorev1beta1.ShootStatus{
			TechnicalID: namespaceOf(i),
			LastOperation: &gardencorev1beta1.LastOperation{
				Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateProcessing,
			},
		},
	}
}

func seed() *gardencorev1beta1.Seed {
	return &gardencorev1beta1.Seed{TypeMeta: typeMeta("Seed"), ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
}

// The CloudProfile of a large provider has hundreds of machine types and dozens of image versions.
// This CloudProfile is the largest part of every Cluster, about 60 KiB.
const (
	machineTypes  = 350
	imageVersions = 40
)

func cloudProfile() *gardencorev1beta1.CloudProfile {
	profile := &gardencorev1beta1.CloudProfile{TypeMeta: typeMeta("CloudProfile"), ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
	for i := range machineTypes {
		profile.Spec.MachineTypes = append(profile.Spec.MachineTypes, machineType(i))
	}
	image := gardencorev1beta1.MachineImage{Name: "gardenlinux"}
	for i := range imageVersions {
		image.Versions = append(image.Versions, gardencorev1beta1.MachineImageVersion{
			ExpirableVersion: gardencorev1beta1.ExpirableVersion{
				Version: fmt.Sprintf("1877.%d.0", i),
			},
			CRI:           []gardencorev1beta1.CRI{{Name: gardencorev1beta1.CRINameContainerD}},
			Architectures: []string{"amd64", "arm64"},
		})
	}
	profile.Spec.MachineImages = []gardencorev1beta1.MachineImage{image}
	for i := range 20 {
		profile.Spec.Regions = append(profile.Spec.Regions, gardencorev1beta1.Region{
			Name:  fmt.Sprintf("region-%d", i),
			Zones: []gardencorev1beta1.AvailabilityZone{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		})
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

// The CA bundle of a shoot with a few private CAs has about 12 KiB.
const (
	certificateLine = "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n"
	caBundleLines   = 180
)

// operatingSystemConfig returns the OperatingSystemConfig of the i-th shoot's worker pool. The
// units and files, for example those of kubelet, are rendered by the code of gardenlet.
func operatingSystemConfig(i int) (*extensionsv1alpha1.OperatingSystemConfig, error) {
	units, files, err := node()
	if err != nil {
		return nil, fmt.Errorf("rendering the OperatingSystemConfig of shoot %d: %w", i, err)
	}
	return &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceOf(i), Name: "gardener-node-agent-" + poolName + "-original",
			Labels: map[string]string{v1beta1constants.LabelWorkerPool: poolName},
		},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "gardenlinux"},
			Purpose:     extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
			CRIConfig:   &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD},
			Units:       units,
			Files:       files,
		},
	}, nil
}

// node returns the units and files of a node, without those of gardener-node-agent and logging.
func node() (units []extensionsv1alpha1.Unit, files []extensionsv1alpha1.File, err error) {
	for _, component := range []components.Component{
		varlibkubeletmount.New(), rootcertificates.New(), containerd.New(), journald.New(), kernelconfig.New(), kubelet.New(),
		sshdensurer.New(),
	} {
		u, f, err := component.Config(nodeContext())
		if err != nil {
			return nil, nil, fmt.Errorf("component %s: %w", component.Name(), err)
		}
		units, files = append(units, u...), append(files, f...)
	}
	return units, files, nil
}

func nodeContext() components.Context {
	image := &imagevectorutils.Image{Repository: ptr.To("registry.test/image"), Tag: ptr.To("v1")}
	return components.Context{
		Key:                    "bench",
		CABundle:               strings.Repeat(certificateLine, caBundleLines),
		KubeletCABundle:        []byte("bundle"),
		ClusterDNSAddresses:    []string{"10.64.0.10"},
		ClusterDomain:          "cluster.local",
		CRIName:                extensionsv1alpha1.CRINameContainerD,
		Images:                 map[string]*imagevectorutils.Image{imagevector.ContainerImageNameHyperkube: image},
		NodeMonitorGracePeriod: metav1.Duration{Duration: 40 * time.Second},
		KubernetesVersion:      semver.MustParse(kubernetesMinor + ".2"),
	}
}
