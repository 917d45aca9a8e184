package gardener

import (
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestOSExtensionObjects(t *testing.T) {
	compareObjects(t, "osextension.yaml", OSExtension{Image: "test/os:1"}.objects())
}

func TestPriorityClasses(t *testing.T) {
	cluster := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	for range 2 {
		if err := InstallPriorityClasses(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		if err := InstallSeedPriorityClasses(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	classes := &schedulingv1.PriorityClassList{}
	if err := cluster.List(t.Context(), classes); err != nil {
		t.Fatal(err)
	}
	got := map[string]int32{}
	for _, class := range classes.Items {
		got[class.Name] = class.Value
	}
	for name, value := range map[string]int32{"gardener-shoot-system-700": 999999700, "gardener-system-900": 999998900} {
		if got[name] != value {
			t.Errorf("%s has value %d, want %d", name, got[name], value)
		}
	}
	if len(got) != 8 {
		t.Errorf("there are %d priority classes, want 8", len(got))
	}
}
