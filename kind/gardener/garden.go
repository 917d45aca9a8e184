package gardener

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// SeedName is the name of the testbed's seed.
const SeedName = "local"

// NewGarden returns the testbed's garden cluster with the given objects.
//
// The garden is controller-runtime's fake client, without a gardener-apiserver: gardenlet's
// components read only a few objects from the garden. The client validates and defaults nothing, so
// pass complete objects. All objects are lost when the process ends.
func NewGarden(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().
		WithScheme(kubernetes.GardenScheme).
		WithStatusSubresource(&gardencorev1beta1.ControllerInstallation{}).
		WithObjects(objects...).
		Build()
}

// NewSeed returns the garden's Seed object for the testbed's seed, with kind's networks.
func NewSeed() *gardencorev1beta1.Seed {
	return &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: SeedName},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "kind", Region: "local"},
			Networks: gardencorev1beta1.SeedNetworks{Pods: "10.244.0.0/16", Services: "10.96.0.0/16"},
			Settings: &gardencorev1beta1.SeedSettings{
				Scheduling:            &gardencorev1beta1.SeedSettingScheduling{Visible: true},
				VerticalPodAutoscaler: &gardencorev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true},
			},
		},
		Status: gardencorev1beta1.SeedStatus{ClusterIdentity: ptr.To("kind-" + SeedName)},
	}
}

// EnsureGardenNamespace creates GardenNamespace in the seed if it does not exist.
func EnsureGardenNamespace(ctx context.Context, seed client.Client) error {
	if err := apply(ctx, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: GardenNamespace}}); err != nil {
		return fmt.Errorf("create the namespace %s of the seed: %w", GardenNamespace, err)
	}
	return nil
}

// NewSeedClient returns gardener's client set for a seed. Reads are not cached. NewSeedClient fails
// if the API server does not answer or Gardener does not support the version of the API server.
func NewSeedClient(config *rest.Config) (kubernetes.Interface, error) {
	return newClientSet("seed", config, kubernetes.SeedScheme)
}

// NewShootClient is like NewSeedClient, but with gardener's scheme for shoots.
func NewShootClient(config *rest.Config) (kubernetes.Interface, error) {
	return newClientSet("shoot", config, kubernetes.ShootScheme)
}

// NewGardenClient is like NewSeedClient, but with gardener's scheme for gardens.
func NewGardenClient(config *rest.Config) (kubernetes.Interface, error) {
	return newClientSet("garden", config, kubernetes.GardenScheme)
}

func newClientSet(cluster string, config *rest.Config, scheme *runtime.Scheme) (kubernetes.Interface, error) {
	clientSet, err := kubernetes.NewWithConfig(kubernetes.WithRESTConfig(config),
		kubernetes.WithClientOptions(client.Options{Scheme: scheme}), kubernetes.WithDisabledCachedClient())
	if err != nil {
		return nil, fmt.Errorf("connect to the %s's API server %s: %w", cluster, config.Host, err)
	}
	return clientSet, nil
}
