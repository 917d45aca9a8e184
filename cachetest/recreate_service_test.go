package cachetest

import (
	"context"
	"strings"
	"testing"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const previousIP = "10.96.0.6"

func cacheService(uid, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "registry-alpha", UID: types.UID(uid)},
		Spec:       corev1.ServiceSpec{ClusterIP: ip},
	}
}

// recreating returns a recreatedService with fake clients. Each triggered reconciliation creates
// the Service with the next address.
func recreating(t *testing.T, addresses ...string) *recreatedService {
	t.Helper()
	previous := cacheService("first", previousIP)
	shoot := fake.NewClientBuilder().WithScheme(kubernetes.ShootScheme).WithObjects(previous.DeepCopy()).Build()
	reconcile := func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if err := c.Patch(ctx, object, patch, options...); err != nil {
			return err
		}
		if object.GetAnnotations()[v1beta1constants.GardenerOperation] != v1beta1constants.GardenerOperationReconcile || len(addresses) == 0 {
			return nil
		}
		ip := addresses[0]
		addresses = addresses[1:]
		return shoot.Create(ctx, cacheService("uid of "+ip+strings.Repeat("'", len(addresses)), ip))
	}
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: v1alpha3.ManagedResourceServices}}
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(resource).
		WithInterceptorFuncs(interceptor.Funcs{Patch: reconcile}).Build()
	return &recreatedService{namespace: "shoot", seed: seed, shoot: shoot, service: previous}
}

func TestRecreated(t *testing.T) {
	for name, addresses := range map[string][]string{
		"another address":    {"10.96.0.7"},
		"the same one twice": {previousIP, previousIP, "10.96.0.7"},
	} {
		t.Run(name, func(t *testing.T) {
			r := recreating(t, addresses...)
			if err := r.Inject(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := "10.96.0.7, previously 10.96.0.6"; r.Outcome() != want {
				t.Errorf("outcome %q, want %q", r.Outcome(), want)
			}
			service := &corev1.Service{}
			if err := r.shoot.Get(t.Context(), client.ObjectKeyFromObject(r.service), service); err != nil || service.Spec.ClusterIP != "10.96.0.7" {
				t.Errorf("the shoot has %s, %v", service.Spec.ClusterIP, err)
			}
		})
	}
}

// TestNotRecreated checks the error if nothing recreates the Service.
func TestNotRecreated(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*recreateInterval)
	defer cancel()
	if err := recreating(t).Inject(ctx); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("error %v", err)
	}
}

func TestRecreationAvailable(t *testing.T) {
	for ready, want := range map[int32]bool{0: false, 1: true} {
		r := recreating(t)
		if err := r.available(t.Context()); err == nil || !strings.Contains(err.Error(), "does not run") {
			t.Errorf("without gardener-resource-manager: %v", err)
		}
		manager := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: v1beta1constants.DeploymentNameGardenerResourceManager},
			Status:     appsv1.DeploymentStatus{ReadyReplicas: ready},
		}
		if err := r.seed.Create(t.Context(), manager); err != nil {
			t.Fatal(err)
		}
		if err := r.available(t.Context()); (err == nil) != want {
			t.Errorf("with %d replicas: %v", ready, err)
		}
	}
}
