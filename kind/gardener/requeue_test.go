package gardener

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestRequeuePending checks that only pending deletions in the namespace are annotated.
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

// TestRequeueDeletions checks that requests continue, despite errors, until stop is called.
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
			t.Errorf("asked %d times in two and a half intervals, want 3", asked)
		}
		<-time.After(10 * requeueInterval)
		if asked != 3 {
			t.Error("it continues after it was stopped")
		}
	})
}
