package gardener

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestWaitForRegistration(t *testing.T) {
	named := metav1.ObjectMeta{Name: "one"}
	with := admissionregistrationv1.WebhookClientConfig{CABundle: []byte("ca")}
	for name, test := range map[string]struct {
		present, wanted client.Object
		failure         string
		took            time.Duration
	}{
		"registered": {
			present: &admissionregistrationv1.MutatingWebhookConfiguration{
				ObjectMeta: named, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "one", ClientConfig: with}},
			},
			wanted: &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named},
		},
		"without CA bundle": {
			present: &admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: named, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "one"}},
			},
			wanted:  &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named},
			failure: "no CA bundle", took: registrationTimeout,
		},
		"not there": {
			present: &corev1.Namespace{ObjectMeta: named},
			wanted:  &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named},
			failure: "not found", took: registrationTimeout,
		},
		"no webhook configuration": {
			present: &corev1.Namespace{ObjectMeta: named}, wanted: &corev1.Namespace{ObjectMeta: named}, failure: "unexpected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(test.present).Build()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				err := waitForRegistration(ctx, reader, test.wanted)
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
					t.Errorf("error %v, want one that says %q", err, test.failure)
				}
			})
		})
	}
}

// TestRequeuePending: only pending deletions in the namespace are annotated.
func TestRequeuePending(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, reason string
		asked             bool
	}{
		"a deletion is pending":           {"shoot--local--local", resourcesv1alpha1.ConditionDeletionPending, true},
		"applied":                         {"shoot--local--local", resourcesv1alpha1.ConditionApplySucceeded, false},
		"not reconciled yet":              {"shoot--local--local", "", false},
		"a deletion elsewhere is pending": {"shoot--local--other", resourcesv1alpha1.ConditionDeletionPending, false},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "one"}}
			if test.reason != "" {
				mr.Status.Conditions = []gardencorev1beta1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Reason: test.reason}}
			}
			seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(mr).Build()
			if err := requeuePending(t.Context(), seed, "shoot--local--local"); err != nil {
				t.Fatal(err)
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); err != nil {
				t.Fatal(err)
			}
			if asked := mr.Annotations["gardener.cloud/operation"] == "reconcile"; asked != test.asked {
				t.Errorf("annotated: %t, want %t", asked, test.asked)
			}
		})
	}
}

// TestRequeueDeletions: it asks every second until it is stopped.
func TestRequeueDeletions(t *testing.T) {
	pending := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--local--local", Name: "one"}}
	pending.Status.Conditions = []gardencorev1beta1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Reason: resourcesv1alpha1.ConditionDeletionPending}}
	asked := 0
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(pending).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			asked++
			return errors.New("the API server is busy")
		},
	}).Build()
	synctest.Test(t, func(t *testing.T) {
		stop := RequeueDeletions(t.Context(), seed, "shoot--local--local")
		<-time.After(requeueInterval * 5 / 2)
		stop()
		if asked != 3 {
			t.Errorf("asked %d times in two and a half seconds, want 3", asked)
		}
		<-time.After(10 * requeueInterval)
		if asked != 3 {
			t.Error("it continues after it was stopped")
		}
	})
}
