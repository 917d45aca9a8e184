package charts

import (
	"slices"
	"testing"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/networkpolicy"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectors "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// prometheus are the labels of the seed's Prometheus
// (gardener's pkg/gardenlet/controller/seed/seed/components.go).
var prometheus = selectors.Set{
	"networking.resources.gardener.cloud/to-all-seed-scrape-targets":            "allowed",
	"networking.resources.gardener.cloud/to-extensions-all-seed-scrape-targets": "allowed",
}

// TestPrometheusReachesTheExtension runs gardener-resource-manager's controller, which creates
// network policies from the annotations of the Service. In a seed, the namespaces of extensions and
// the namespace garden deny all other traffic.
func TestPrometheusReachesTheExtension(t *testing.T) {
	for file, want := range map[string]bool{"minimal": true, "full": false} {
		t.Run(file, func(t *testing.T) {
			service := extensionService(t, extensionCases+"/"+file+valuesSuffix)
			pod := extensionPod(t, extensionCases+"/"+file+valuesSuffix)
			ingress, egress := false, false
			for _, policy := range networkPolicies(t, service) {
				selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
				if err != nil {
					t.Fatal(err)
				}
				switch policy.Namespace {
				case "garden":
					egress = egress || selector.Matches(prometheus) && len(policy.Spec.Egress) > 0
				case namespace:
					ingress = ingress || selector.Matches(selectors.Set(pod.Labels)) && admitsPrometheus(t, policy)
				}
			}
			if ingress != want || egress != want {
				t.Errorf("policies let Prometheus's requests into the extension: %t, and out of garden: %t; want %t", ingress, egress, want)
			}
			if served := slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "metrics" }); served != want {
				t.Errorf("the Service has a port for metrics: %t, want %t", served, want)
			}
			if got := pod.Annotations["prometheus.io/scrape"] == "true"; got != want {
				t.Errorf("Prometheus finds the pods: %t, want %t", got, want)
			}
		})
	}
}

// admitsPrometheus returns whether the policy lets in requests from the seed's Prometheus.
func admitsPrometheus(t *testing.T, policy networkingv1.NetworkPolicy) bool {
	t.Helper()
	for _, rule := range policy.Spec.Ingress {
		for _, peer := range rule.From {
			if peer.NamespaceSelector == nil || peer.PodSelector == nil || peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "garden" {
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(peer.PodSelector)
			if err != nil {
				t.Fatal(err)
			}
			if selector.Matches(prometheus) {
				return true
			}
		}
	}
	return false
}

// networkPolicies returns what gardener-resource-manager creates for the Service.
func networkPolicies(t *testing.T, service *corev1.Service) []networkingv1.NetworkPolicy {
	t.Helper()
	newNamespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name}}}
	}
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(newNamespace("garden"), newNamespace(namespace), service,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "prometheus-seed-0", Namespace: "garden", Labels: prometheus}}).Build()
	controller := &networkpolicy.Reconciler{
		TargetClient: seed, Config: resourcemanagerconfigv1alpha1.NetworkPolicyControllerConfig{}, Recorder: events.NewFakeRecorder(10),
	}
	if _, err := controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(service)}); err != nil {
		t.Fatal(err)
	}
	policies := &networkingv1.NetworkPolicyList{}
	if err := seed.List(t.Context(), policies); err != nil {
		t.Fatal(err)
	}
	return policies.Items
}

func extensionService(t *testing.T, values string) *corev1.Service {
	t.Helper()
	manifest, err := render(t, extensionChart, readValues(t, values))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range decode(t, manifest) {
		if service, ok := object.(*corev1.Service); ok {
			return service
		}
	}
	t.Fatal("the chart contains no Service")
	return nil
}
