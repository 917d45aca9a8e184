package gardener

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestExtensionReconcile plays the extension: it takes the annotation away at the first look, and is done at the second.
func TestExtensionReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		outcome gardencorev1beta1.LastOperationState
		failure string
	}{
		"succeeds":     {outcome: gardencorev1beta1.LastOperationStateSucceeded},
		"never ends":   {outcome: gardencorev1beta1.LastOperationStateProcessing, failure: "not reconciled after 1m0s"},
		"is not there": {failure: "not yet picked up"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := metav1.NewTime(time.Now().Add(-time.Hour))
				mine, foreign := extensionOf("mine", "sample", before), extensionOf("foreign", "other", before)
				seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(mine, foreign).
					WithStatusSubresource(mine).WithInterceptorFuncs(interceptor.Funcs{Get: acting(test.outcome)}).Build()
				count, err := Extension{Name: "sample"}.Reconcile(t.Context(), seed)
				if count != 1 {
					t.Errorf("%d Extensions were reconciled, want the one of this type", count)
				}
				if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
					t.Errorf("error %v, want one that says %q", err, test.failure)
				}
				if err := seed.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
					t.Fatal(err)
				}
				if len(foreign.Annotations) > 0 {
					t.Errorf("the Extension of another type has the annotations %v", foreign.Annotations)
				}
			})
		})
	}
}

func extensionOf(name, extensionType string, last metav1.Time) *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name},
		Spec:       extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: extensionType}},
		Status: extensionsv1alpha1.ExtensionStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{
			LastOperation: &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded, LastUpdateTime: last},
		}},
	}
}

// acting returns a Get that acts as the extension before it answers; for no outcome there is no extension.
func acting(outcome gardencorev1beta1.LastOperationState) func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
	return func(ctx context.Context, seed client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if err := seed.Get(ctx, key, object, options...); err != nil {
			return err
		}
		extension, ok := object.(*extensionsv1alpha1.Extension)
		if !ok || outcome == "" {
			return nil
		}
		if _, asked := extension.Annotations[v1beta1constants.GardenerOperation]; asked {
			seen := extension.DeepCopy()
			delete(seen.Annotations, v1beta1constants.GardenerOperation)
			return seed.Update(ctx, seen)
		}
		done := extension.DeepCopy()
		done.Status.LastOperation.State, done.Status.LastOperation.LastUpdateTime = outcome, metav1.Now()
		return seed.Status().Update(ctx, done)
	}
}
