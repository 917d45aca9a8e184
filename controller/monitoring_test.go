package controller

import (
	"context"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-extensions/registry-cache/charts"
)

// TestMonitoringOfTheOriginal: gardener-resource-manager takes over the dashboard that
// gardener-extension-registry-cache has left in the namespace, and deletes it together with ours.
func TestMonitoringOfTheOriginal(t *testing.T) {
	left := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "registry-cache-dashboards", UID: "left",
			Labels: map[string]string{"component": "registry-cache", "dashboard.monitoring.gardener.cloud/shoot": "true"},
		},
		Data: map[string]string{"registry-cache.dashboard.json": "{}", "other.json": "{}"},
	}
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).
		WithObjects(left, newExtension([]string{alpha}, nil), cluster()).Build()
	a := NewActuator(seed, func(context.Context, string) (client.Client, error) { return nil, nil }, charts.Images{})
	shoot, err := a.cluster(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	read, err := a.read(t.Context(), newExtension([]string{alpha}, nil), shoot)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.deployMonitoring(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: monitoringName}, mr); err != nil {
		t.Fatal(err)
	}
	// Without this label, gardenlet reports problems as ControlPlaneHealthy.
	if condition := mr.Labels[v1beta1constants.LabelCareConditionType]; condition != string(gardencorev1beta1.ShootObservabilityComponentsHealthy) {
		t.Errorf("gardenlet counts the ManagedResource as %q", condition)
	}
	manager := (&landscape{unwatched: seed, shoot: seed}).newManager()
	manager.TargetScheme, manager.ClassFilter = kubernetes.SeedScheme, resourcemanagerpredicate.NewClassFilter("seed")
	reconcileIt := func() {
		t.Helper()
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(mr)}
		if _, err := manager.Reconcile(logf.IntoContext(t.Context(), logr.Discard()), request); err != nil {
			t.Fatal(err)
		}
	}
	reconcileIt()
	taken := &corev1.ConfigMap{}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(left), taken); err != nil {
		t.Fatal(err)
	}
	if len(taken.Data) != 1 || len(taken.Data["registry-cache.dashboard.json"]) < 1000 || taken.UID != left.UID {
		t.Errorf("ConfigMap %s has %v", taken.UID, taken.Data)
	}
	if err := seed.Delete(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	reconcileIt()
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(left), taken); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the dashboard stays, error %v", err)
	}
}
