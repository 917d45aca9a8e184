package gardener

import (
	"slices"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestMonitoringCRDs(t *testing.T) {
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithStatusSubresource(&apiextensionsv1.CustomResourceDefinition{}).Build()
	crds, err := newMonitoringCRDs(seed)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second Deploy keeps them
		if err := crds.Deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := seed.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, crd := range list.Items {
		got = append(got, crd.Name)
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
		if err := seed.Status().Update(t.Context(), &crd); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, monitoringNames) {
		t.Errorf("installed %q, want %q", got, monitoringNames)
	}
	if err := crds.Wait(t.Context()); err != nil {
		t.Errorf("wait for them: %v", err)
	}
}
