package gardener

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// SeedName is the name of the testbed's seed.
const SeedName = "local"

// NewGarden returns the garden cluster of the testbed, which holds the given objects.
//
// It is a fake, controller-runtime's in-memory client: there is no gardener-apiserver here, and gardenlet's components
// only read a handful of objects from the garden. It lives as long as the process (OpenGarden's lives longer) and does not
// validate or default anything, so callers hand in complete objects.
func NewGarden(objects ...client.Object) client.Client { return newGardenBuilder(objects...).Build() }

func newGardenBuilder(objects ...client.Object) *fake.ClientBuilder {
	return fake.NewClientBuilder().
		WithScheme(kubernetes.GardenScheme).
		WithStatusSubresource(&gardencorev1beta1.ControllerInstallation{}).
		WithObjects(objects...)
}

// NewSeed returns the garden's object for the testbed's seed. Its networks are those of kind.
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
