package gardenlet

import (
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/osextension"
)

// Names of the testbed's shoots.
const (
	// ProjectNamespace is the garden's namespace for shoots and the objects to which they refer.
	ProjectNamespace = "garden-" + project
	DefaultShoot     = "local" // the shoot that every testbed has
	WorkerPool       = "local" // a shoot's only worker pool

	project, region            = "local", "local"
	cloudProfileName, provider = "kind", "kind"
	credentialsBinding         = "local"
)

// Networks of kind's clusters. A Shoot has the networks of its first IP family.
const (
	podNetwork, serviceNetwork         = "10.244.0.0/16", "10.96.0.0/16"
	podNetworkIPv6, serviceNetworkIPv6 = "fd00:10:244::/56", "fd00:10:96::/112"
)

// Namespace returns the technical ID of a shoot, which is its namespace in the seed.
func Namespace(name string) string {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return gardenerutils.ComputeTechnicalID(project, shoot)
}

// Shoot returns the shoot DefaultShoot with the given extensions (see NewShoot).
func Shoot(extensions ...gardencorev1beta1.Extension) *gardencorev1beta1.Shoot {
	return NewShoot(DefaultShoot, extensions...)
}

// NewShoot returns a shoot with the given name and extensions. Its Kubernetes version is empty: a
// flow uses the version of the cluster that serves as the shoot.
func NewShoot(name string, extensions ...gardencorev1beta1.Extension) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		TypeMeta: metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  ProjectNamespace,
			Name:       name,
			UID:        types.UID(uuid.NewSHA1(uuid.NameSpaceDNS, []byte(Namespace(name))).String()),
			Generation: 1,
			// By default, nodes apply a new operating system config up to five minutes later.
			Annotations: map[string]string{v1beta1constants.AnnotationShootCloudConfigExecutionMaxDelaySeconds: "0"},
		},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile: &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: cloudProfileName},
			Region:       region,
			// Machines need no credentials, but a garden demands some.
			CredentialsBindingName: ptr.To(credentialsBinding),
			SeedName:               ptr.To(gardener.SeedName),
			Purpose:                ptr.To(gardencorev1beta1.ShootPurposeEvaluation),
			Extensions:             extensions,
			Networking: &gardencorev1beta1.Networking{
				Type: ptr.To("kind"), Pods: ptr.To(podNetwork), Services: ptr.To(serviceNetwork),
				IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4},
			},
			Provider: gardencorev1beta1.Provider{
				Type:            provider,
				Workers:         []gardencorev1beta1.Worker{worker()},
				WorkersSettings: &gardencorev1beta1.WorkersSettings{SSHAccess: &gardencorev1beta1.SSHAccess{Enabled: false}},
			},
		},
	}
}

// Extension returns an extension for a shoot's spec. providerConfig is JSON and may be empty.
func Extension(extensionType string, providerConfig []byte) gardencorev1beta1.Extension {
	extension := gardencorev1beta1.Extension{Type: extensionType}
	if len(providerConfig) > 0 {
		extension.ProviderConfig = &runtime.RawExtension{Raw: providerConfig}
	}
	return extension
}

// worker returns the worker pool. It has no CRI, so that gardener-node-agent does not touch
// containerd's configuration, which belongs to kind on a kind node. With the CRI containerd, as in
// a garden, gardener-node-agent configures containerd, including the registries that an extension
// adds to criConfig. If a test changes the CRI, the nodes are kept and receive the new
// configuration.
func worker() gardencorev1beta1.Worker {
	return gardencorev1beta1.Worker{
		Name: WorkerPool,
		Machine: gardencorev1beta1.Machine{
			Type:         provider,
			Image:        &gardencorev1beta1.ShootMachineImage{Name: osextension.Type, Version: ptr.To("1.0.0")},
			Architecture: ptr.To(v1beta1constants.ArchitectureAMD64),
		},
		Minimum: 2, Maximum: 2,
		MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		SystemComponents: &gardencorev1beta1.WorkerSystemComponents{Allow: true},
	}
}

func cloudProfile() *gardencorev1beta1.CloudProfile {
	return &gardencorev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: cloudProfileName},
		Spec:       gardencorev1beta1.CloudProfileSpec{Type: provider, Regions: []gardencorev1beta1.Region{{Name: region}}},
	}
}

// now returns the current time as the API server stores it.
func now() *metav1.Time {
	return ptr.To(metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
}
