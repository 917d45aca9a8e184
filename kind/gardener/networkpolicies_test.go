package gardener

import (
	"slices"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestNetworkPolicies: the namespaces of a seed get gardenlet's policies, and others get none.
func TestNetworkPolicies(t *testing.T) {
	role := func(role string) map[string]string { return map[string]string{"gardener.cloud/role": role} }
	builder := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(&corev1.Endpoints{ //nolint:staticcheck // gardener reads it
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
	})
	namespaces := map[string]map[string]string{
		GardenNamespace: {corev1.LabelMetadataName: GardenNamespace}, "extension-x": role("extension"), "other": nil,
	}
	for name, labels := range namespaces {
		builder.WithObjects(&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		})
	}
	seed := builder.Build()
	for name := range namespaces {
		if err := DeployNetworkPolicies(t.Context(), seed, name); err != nil {
			t.Fatal(err)
		}
		policies := &networkingv1.NetworkPolicyList{}
		if err := seed.List(t.Context(), policies, client.InNamespace(name)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, policy := range policies.Items {
			got = append(got, policy.Name)
		}
		want := []string{
			"allow-to-blocked-cidrs", "allow-to-dns", "allow-to-private-networks", "allow-to-public-networks", "allow-to-runtime-apiserver", "deny-all",
		}
		if name == "other" {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("namespace %s has the policies %v, want %v", name, got, want)
		}
	}
}
