package shoot_test

import (
	"encoding/json"
	"strings"
	"testing"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

// gardenManager is the part of a manager that New needs, with a fake API server.
type gardenManager struct {
	manager.Manager
	client client.Client
}

func (m gardenManager) GetScheme() *runtime.Scheme  { return m.client.Scheme() }
func (m gardenManager) GetClient() client.Client    { return m.client }
func (m gardenManager) GetAPIReader() client.Reader { return m.client }

func newWebhook(t *testing.T, objects ...client.Object) *extensionswebhook.Webhook {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	webhook, err := shoot.New(gardenManager{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()})
	if err != nil {
		t.Fatal(err)
	}
	return webhook
}

// handle sends a Shoot to the webhook, as gardener-apiserver does.
func handle(t *testing.T, webhook *extensionswebhook.Webhook, s, old *gardencorev1beta1.Shoot) admission.Response {
	t.Helper()
	request := admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"},
		Namespace: s.Namespace,
		Name:      s.Name,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: encode(t, s)},
	}
	if old != nil {
		request.Operation, request.OldObject.Raw = admissionv1.Update, encode(t, old)
	}
	return webhook.Webhook.Handler.Handle(t.Context(), admission.Request{AdmissionRequest: request})
}

func encode(t *testing.T, s *gardencorev1beta1.Shoot) []byte {
	t.Helper()
	s = s.DeepCopy()
	s.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestWebhook(t *testing.T) {
	webhook := newWebhook(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "good"}, Immutable: new(true),
		Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")},
	})
	for name, test := range map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		want       string
	}{
		"valid":             {refersTo(withConfig(private), "Secret", "good"), nil, ""},
		"invalid":           {withConfig(wrong), nil, configPath + ".caches[0].upstream"},
		"absent":            {refersTo(withConfig(private), "Secret", "absent"), nil, "garden-dev/absent, which does not exist"},
		"class changes":     {withConfig(slow), withConfig(fast), "cannot be changed from"},
		"unrelated":         {edited(withConfig(wrong), unrelated), withConfig(wrong), ""},
		"without extension": {edited(withConfig(wrong), remove), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := handle(t, webhook, test.shoot, test.old)
			if response.Allowed != (test.want == "") {
				t.Fatalf("allowed: %t, %+v", response.Allowed, response.Result)
			}
			if !response.Allowed && !strings.Contains(response.Result.Message, test.want) {
				t.Errorf("%q does not contain %q", response.Result.Message, test.want)
			}
		})
	}
}
