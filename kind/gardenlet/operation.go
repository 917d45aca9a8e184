package gardenlet

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/imagevector"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components"
	"github.com/gardener/gardener/pkg/gardenlet/operation"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	"github.com/gardener/gardener/pkg/gardenlet/operation/garden"
	seedpkg "github.com/gardener/gardener/pkg/gardenlet/operation/seed"
	shootpkg "github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	imagevectorutils "github.com/gardener/gardener/pkg/utils/imagevector"
	secretsutils "github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	fakesecretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// shootOperation contains what one run of a flow uses: gardenlet's Botanist and the emulated parts.
type shootOperation struct {
	*botanist.Botanist
	gardenlet            *Gardenlet
	resourceManager      gardener.ResourceManager
	namespaceTerminating bool // the shoot's namespace is being deleted
}

// prepare corresponds to gardenlet's initializeOperation: it builds the Botanist with the
// components that the flows use. The shoot has all defaults. An error about its name has a code
// that gardenlet does not retry.
func (g *Gardenlet) prepare(ctx context.Context, shoot *gardencorev1beta1.Shoot, landscape landscape) (*shootOperation, error) {
	if shoot.Name != g.Name {
		err := fmt.Errorf("the testbed drives only shoot %s: use this name", g.Name)
		return nil, v1beta1helper.NewErrorWithCodes(err, gardencorev1beta1.ErrorConfigurationProblem)
	}
	seed, err := seedpkg.NewBuilder().WithSeedObject(landscape.seed).Build(ctx)
	if err != nil {
		return nil, err
	}
	shootInfo, err := shootpkg.NewBuilder().
		WithShootObject(shoot).
		WithCloudProfileObject(landscape.cloudProfile).
		WithSeedObject(seed.GetInfo()).
		WithProjectName(project).
		WithInternalDomain(landscape.internalDomain).
		WithDefaultDomains(landscape.defaultDomains).
		WithoutShootCredentials().
		Build(ctx, g.Seed, g.Garden)
	if err != nil {
		return nil, err
	}
	shootInfo.Networks = &shootpkg.Networks{}

	o := &shootOperation{
		Botanist: &botanist.Botanist{Operation: &operation.Operation{
			Clock: clock.RealClock{}, Logger: g.Log,
			GardenClient: g.Garden, SeedClientSet: g.Seed, ShootClientSet: g.Shoot,
			Garden: &garden.Garden{InternalDomain: landscape.internalDomain}, Seed: seed, Shoot: shootInfo,
		}},
		resourceManager: gardener.ResourceManager{
			Namespace: shootInfo.ControlPlaneNamespace, Image: g.ResourceManagerImage, TargetKubeconfig: g.ShootKubeconfig,
		},
		gardenlet: g,
	}
	o.Shoot.Components.Extensions.Extension, err = o.DefaultExtension(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the component for extensions: %w", err)
	}
	o.resourceManager.Stopped = o.apiServerStopped()
	o.useOperatingSystemConfigs()
	namespace := &corev1.Namespace{}
	if err := g.Seed.Client().Get(ctx, client.ObjectKey{Name: shootInfo.ControlPlaneNamespace}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the shoot's namespace: %w", err)
	}
	o.namespaceTerminating = namespace.DeletionTimestamp != nil
	return o, nil
}

// The operating system configs of a real shoot set up the whole node: kubelet, containerd, sysctls
// and so on. They would break a kind node, so gardenlet's component generates configs without units
// and files here, and gardener-node-agent applies only what extensions add.
func init() {
	operatingsystemconfig.OriginalConfigFn = func(components.Context) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File, error) {
		return nil, nil, nil
	}
	operatingsystemconfig.InitConfigFn = func(
		gardencorev1beta1.Worker, string, *nodeagentconfigv1alpha1.NodeAgentConfiguration, []byte, bool,
	) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File, error) {
		return nil, nil, nil
	}
}

func (o *shootOperation) useOperatingSystemConfigs() {
	o.SecretsManager = caSecrets(o.Shoot.ControlPlaneNamespace, o.ShootClientSet.RESTConfig())
	o.Shoot.Components.Extensions.OperatingSystemConfig = operatingsystemconfig.New(o.Logger, o.SeedClientSet.Client(), o.SecretsManager,
		&operatingsystemconfig.Values{
			Namespace:         o.Shoot.ControlPlaneNamespace,
			KubernetesVersion: o.Shoot.KubernetesVersion,
			Workers:           o.Shoot.GetInfo().Spec.Provider.Workers,
			OriginalValues: operatingsystemconfig.OriginalValues{
				ClusterDomain:    gardencorev1beta1.DefaultDomain,
				KubeProxyEnabled: true,
				PrimaryIPFamily:  primaryIPFamily(o.Shoot.GetInfo()),
				Images: map[string]*imagevectorutils.Image{
					// The component only formats this reference; nothing pulls it.
					imagevector.ContainerImageNameGardenerNodeAgent: {
						Name: imagevector.ContainerImageNameGardenerNodeAgent, Repository: ptr.To("gardener-node-agent"), Tag: ptr.To(gardener.Version),
					},
					// Used only for workers with the CRI containerd.
					imagevector.ContainerImageNamePauseContainer: {
						Name: imagevector.ContainerImageNamePauseContainer, Repository: ptr.To(pauseRepository), Tag: ptr.To(pauseTag),
					},
				},
			},
		},
		pollInterval, operatingsystemconfig.DefaultSevereThreshold, operatingsystemconfig.DefaultTimeout)
}

// The pause image that kind configures in containerd. gardener-node-agent writes the image in the
// operating system config to containerd's configuration. Without an image, it writes an empty name.
const pauseRepository, pauseTag = "registry.k8s.io/pause", "3.10"

func primaryIPFamily(shoot *gardencorev1beta1.Shoot) gardencorev1beta1.IPFamily {
	if networking := shoot.Spec.Networking; networking != nil && len(networking.IPFamilies) > 0 {
		return networking.IPFamilies[0]
	}
	return gardencorev1beta1.IPFamilyIPv4
}

// caSecrets returns a secrets manager with the CA bundles of the shoot's API server and kubelets,
// and an empty SSH key pair. The manager is Gardener's fake on an in-memory client: kind owns the
// shoot's certificates.
func caSecrets(namespace string, shoot *rest.Config) secretsmanager.Interface {
	ca := func(name string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Data:       map[string][]byte{secretsutils.DataKeyCertificateBundle: shoot.CAData},
		}
	}
	// In a landscape, this key is for SSH access to machines. The testbed's machines run no SSH
	// server.
	sshKey := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1beta1constants.SecretNameSSHKeyPair}}
	secrets := fake.NewClientBuilder().WithObjects(ca(v1beta1constants.SecretNameCACluster), ca(v1beta1constants.SecretNameCAKubelet), sshKey)
	return fakesecretsmanager.New(secrets.Build(), namespace)
}
