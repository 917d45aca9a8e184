package operatingsystemconfig

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// handle sends the creation of the object to the webhook, as an API server does.
func handle(t *testing.T, webhook *extensionswebhook.Webhook, osc *extensionsv1alpha1.OperatingSystemConfig) admission.Response {
	t.Helper()
	raw, err := json.Marshal(osc)
	if err != nil {
		t.Fatal(err)
	}
	return webhook.Webhook.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind{Group: extensionsv1alpha1.SchemeGroupVersion.Group, Version: "v1alpha1", Kind: "OperatingSystemConfig"},
		Namespace: osc.Namespace,
		Name:      osc.Name,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
	}})
}

// mutate returns the object that the API server would store after the webhook has answered.
func mutate(t *testing.T, webhook *extensionswebhook.Webhook, osc *extensionsv1alpha1.OperatingSystemConfig) *extensionsv1alpha1.OperatingSystemConfig {
	t.Helper()
	response := handle(t, webhook, osc)
	if !response.Allowed {
		t.Fatalf("rejected: %s", response.Result.Message)
	}
	stored, err := json.Marshal(osc)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Patches) > 0 {
		operations, err := json.Marshal(response.Patches)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		if stored, err = patch.Apply(stored); err != nil {
			t.Fatal(err)
		}
	}
	result := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := json.Unmarshal(stored, result); err != nil {
		t.Fatal(err)
	}
	return result
}
