package gardener

import (
	"bytes"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/golden"
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

// compareObjects compares the objects, in the form in which they are applied, with a golden file.
func compareObjects(t *testing.T, name string, objects []client.Object) {
	t.Helper()
	var got bytes.Buffer
	for _, object := range objects {
		configuration, err := applyConfiguration(object, kubernetes.SeedScheme)
		if err != nil {
			t.Fatal(err)
		}
		data, err := yaml.Marshal(configuration.Object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(data)
	}
	golden.Compare(t, name, got.Bytes())
}

var (
	shootManager = ResourceManager{Namespace: "shoot--local--local", Image: "test/manager:1", TargetKubeconfig: []byte("a kubeconfig")}
	seedManager  = SeedResourceManager("test/manager:1")
)

func TestResourceManagerObjects(t *testing.T) {
	for name, manager := range map[string]ResourceManager{"shoot": shootManager, "seed": seedManager} {
		t.Run(name, func(t *testing.T) {
			objects, err := manager.objects()
			if err != nil {
				t.Fatal(err)
			}
			compareObjects(t, "resourcemanager-"+name+".yaml", objects)
		})
	}
}

func TestResourceManagerRollsOutWhenItsTargetChanges(t *testing.T) {
	checksum := func(kubeconfig string) string {
		manager := ResourceManager{Namespace: "ns", Image: "image", TargetKubeconfig: []byte(kubeconfig)}
		config, err := manager.config()
		if err != nil {
			t.Fatal(err)
		}
		return manager.deployment(config).Spec.Template.Annotations["checksum/config"]
	}
	if checksum("one") == checksum("two") {
		t.Error("pods would continue to use the old kubeconfig")
	}
}

func TestResourceManagerDeployAndDestroy(t *testing.T) {
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	if err := shootManager.Deploy(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	certificate := shootManager.certificate()
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(certificate), certificate); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"tls.crt", "tls.key"} {
		if len(certificate.Data[key]) == 0 {
			t.Errorf("the certificate lacks %s", key)
		}
	}

	if err := shootManager.Deploy(t.Context(), seed); err != nil {
		t.Fatalf("second deployment: %v", err)
	}
	again := shootManager.certificate()
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil {
		t.Fatal(err)
	}
	if string(again.Data["tls.crt"]) != string(certificate.Data["tls.crt"]) {
		t.Error("the second deployment replaced the certificate")
	}

	if err := shootManager.Destroy(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}, &appsv1.DeploymentList{}} {
		if err := seed.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(certificate), certificate); !apierrors.IsNotFound(err) {
		t.Errorf("the certificate is left: %v", err)
	}
	if err := shootManager.Destroy(t.Context(), seed); err != nil {
		t.Errorf("second destruction: %v", err)
	}
}
