package gardener

import (
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var (
	shootManager = ShootResourceManager("shoot--local--local", "test/manager:1", []byte("a kubeconfig"))
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
		manager := ShootResourceManager("ns", "image", []byte(kubeconfig))
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
