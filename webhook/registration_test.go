package webhook_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gardener-extensions/registry-cache/webhook"
)

// TestRegistrationSharesNoObject starts a leader. While its certificate management writes the
// registration, the object into which the leader reads it is empty, as during decoding. The
// registration must still contain the webhook and its CA bundle.
func TestRegistrationSharesNoObject(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension", UID: "1"}}
	certificate := &corev1.Secret{ // of an earlier leader
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "certificate", Labels: map[string]string{
			secretsmanager.LabelKeyName:            "test-webhook-server",
			secretsmanager.LabelKeyManagedBy:       secretsmanager.LabelValueSecretsManager,
			secretsmanager.LabelKeyManagerIdentity: "gardener-extension-test-webhook",
		}},
	}
	registration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener-extension-test"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "outdated"}},
	}
	var reads, writes atomic.Int32
	second, empty, written, twice := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithRESTMapper(mapper).WithObjects(namespace, certificate, registration).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if read, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
				switch reads.Add(1) {
				case 1: // by the leader at its start
					await(ctx, second)
					*read = admissionregistrationv1.MutatingWebhookConfiguration{}
					close(empty)
					await(ctx, written)
				case 2: // by the certificate management
					close(second)
					await(ctx, empty)
				}
			}
			return c.Get(ctx, key, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			err := c.Patch(ctx, object, patch, options...)
			if _, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration); ok && err == nil {
				switch writes.Add(1) {
				case 1:
					close(written)
				case 2:
					close(twice)
				}
			}
			return err
		},
	}).Build()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	mgr := newManager(t, seed)
	options := webhookcmd.NewAddToManagerOptions("test", "", nil, nil,
		&webhookcmd.ServerOptions{Namespace: namespace.Name, Mode: extensionswebhook.ModeService},
		webhookcmd.NewSwitchOptions(webhookcmd.Switch("wanted", func(manager.Manager) (*extensionswebhook.Webhook, error) {
			return &extensionswebhook.Webhook{
				Name: "wanted", Path: "wanted", Target: extensionswebhook.TargetSeed, Webhook: &admission.Webhook{},
				Types: []extensionswebhook.Type{{Obj: &corev1.ConfigMap{}}},
			}, nil
		})))
	if err := options.Complete(); err != nil {
		t.Fatal(err)
	}
	if err := webhook.AddToManager(ctx, mgr, nil, "test", options.Completed()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()

	select {
	case <-twice:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatalf("the leader wrote the registration %d times within a minute, want two writes", writes.Load())
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := seed.Get(context.Background(), client.ObjectKeyFromObject(registration), registration); err != nil {
		t.Fatal(err)
	}
	if len(registration.Webhooks) != 1 || registration.Webhooks[0].Name != "wanted.test.extensions.gardener.cloud" ||
		len(registration.Webhooks[0].ClientConfig.CABundle) == 0 {
		t.Errorf("registered %v, want wanted with a CA bundle", registration.Webhooks)
	}
	if owners := registration.OwnerReferences; len(owners) != 1 || owners[0].UID != namespace.UID {
		t.Errorf("owned by %v, want the namespace of the extension", owners)
	}
}

func await(ctx context.Context, event <-chan struct{}) {
	select {
	case <-event:
	case <-ctx.Done():
	}
}

// newManager returns a leader that uses only the client c. Its webhook server does not listen.
func newManager(t *testing.T, c client.Client) isolated {
	t.Helper()
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Scheme: kubernetes.SeedScheme, Controller: config.Controller{SkipNameValidation: ptr.To(true)}, Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return c, nil },
		NewCache:  func(*rest.Config, cache.Options) (cache.Cache, error) { return &informertest.FakeInformers{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return isolated{mgr, c, ctrlwebhook.NewServer(ctrlwebhook.Options{CertDir: t.TempDir()})}
}

type isolated struct {
	manager.Manager
	reader client.Reader
	server ctrlwebhook.Server
}

func (m isolated) GetAPIReader() client.Reader          { return m.reader }
func (m isolated) GetWebhookServer() ctrlwebhook.Server { return m.server }
