package gardenlet

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestContainerdIsConfigured: gardener-node-agent receives kind's pause image and kind's cgroup
// driver.
func TestContainerdIsConfigured(t *testing.T) {
	g := testGardenlet()
	shoot := Shoot()
	shoot.Spec.Provider.Workers[0].CRI = &gardencorev1beta1.CRI{Name: gardencorev1beta1.CRINameContainerD}
	o, plain := prepared(t, g, shoot), prepared(t, g, Shoot())
	if err := o.tasks().deployOperatingSystemConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	config := &extensionsv1alpha1.OperatingSystemConfig{}
	key := client.ObjectKey{Namespace: namespace, Name: workers{o}.secretName() + "-original"}
	if err := g.Seed.Client().Get(t.Context(), key, config); err != nil {
		t.Fatal(err)
	}
	containerd := ptr.Deref(config.Spec.CRIConfig, extensionsv1alpha1.CRIConfig{}).Containerd
	if containerd == nil || containerd.SandboxImage != "registry.k8s.io/pause:3.10" {
		t.Errorf("containerd's configuration is %+v", containerd)
	}
	if err := plain.tasks().deployOperatingSystemConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name := (workers{plain}).secretName(); name+"-original" == key.Name {
		t.Errorf("both have the Secret %s", name)
	}
}
