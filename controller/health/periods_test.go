package health

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// TestHangingShootIsPaused: a shoot that hangs is checked less and less often, so that others are
// checked in time. Its conditions do not change.
func TestHangingShootIsPaused(t *testing.T) {
	seed := seedWith(t, func(*gardencorev1beta1.Shoot) {})
	synctest.Test(t, func(t *testing.T) {
		began, hangs := time.Now(), true
		var asked []time.Duration
		check := newActuator(seed, func(context.Context, string) (client.Client, error) {
			asked = append(asked, time.Since(began)/time.Minute)
			if hangs {
				return nil, &shootclient.NoAnswerError{}
			}
			return shootWith(nil, claim(alpha, 0), pod(alpha, 0)), nil
		})
		for time.Since(began) < time.Hour {
			results, err := check.ExecuteHealthCheckFunctions(t.Context(), logr.Discard(), extensionKey)
			if wasAsked := time.Since(began)/time.Minute == asked[len(asked)-1]; err != nil || wasAsked != (len(*results) > 0) {
				t.Errorf("after %s: asked %t, results %+v, error %v", time.Since(began), wasAsked, results, err)
			}
			if hangs = time.Since(began) < 50*time.Minute; !hangs && len(asked) < 10 {
				asked = append(asked, -1)
			}
			<-time.After(2 * time.Minute)
		}
		if want := []time.Duration{0, 2, 4, 6, 10, 16, 26, 36, 46, -1, 56, 58}; !slices.Equal(asked, want) {
			t.Errorf("asked after minutes %d, want %d", asked, want)
		}
	})
}

// TestDeletedExtension: the library would look for a deleted Extension in every period, forever.
// Another Extension shows that periods pass.
func TestDeletedExtension(t *testing.T) {
	const other = "shoot--local--other"
	inner := seedWith(t, func(*gardencorev1beta1.Shoot) {})
	cluster := &extensionsv1alpha1.Cluster{}
	if err := inner.Get(t.Context(), client.ObjectKey{Name: namespace}, cluster); err != nil {
		t.Fatal(err)
	}
	deleted := &extensionsv1alpha1.Extension{}
	if err := inner.Get(t.Context(), extensionKey, deleted); err != nil {
		t.Fatal(err)
	}
	kept := deleted.DeepCopy()
	kept.Namespace, kept.ResourceVersion, cluster.Name, cluster.ResourceVersion = other, "", other, ""
	for _, object := range []client.Object{kept, cluster} {
		if err := inner.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := inner.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	var missed atomic.Int32
	periods := make(chan struct{})
	seed := interceptor.NewClient(inner, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, obj, opts...)
		if apierrors.IsNotFound(err) && key == extensionKey {
			missed.Add(1)
		}
		return err
	}})
	check := newActuator(seed, func(_ context.Context, of string) (client.Client, error) {
		select {
		case periods <- struct{}{}:
		case <-t.Context().Done():
		}
		return shootWith(nil, claim(alpha, 0), pod(alpha, 0)), nil
	})
	forgotten := make(chan string, 100)
	check.forget = func(namespace string) { forgotten <- namespace }
	informer := start(t, seed, 10*time.Millisecond, check)
	for missed.Load() == 0 {
		informer.Add(deleted)
		informer.Add(kept)
		select {
		case <-periods:
		case <-time.After(50 * time.Millisecond):
		}
	}
	for range 3 { // earlier entries of the queue
		<-periods
	}
	before := missed.Load()
	for range 20 {
		<-periods
	}
	if after := missed.Load(); after != before || len(forgotten) == 0 {
		t.Errorf("the deleted Extension was looked for %d times more, and forgotten %d times", after-before, len(forgotten))
	}
}

// TestWithoutPeriod: conditions of earlier checks must not remain in the Shoot forever.
func TestWithoutPeriod(t *testing.T) {
	seed := seedWith(t, func(*gardencorev1beta1.Shoot) {})
	ex := &extensionsv1alpha1.Extension{}
	if err := seed.Get(t.Context(), extensionKey, ex); err != nil {
		t.Fatal(err)
	}
	for _, kind := range conditions {
		ex.Status.Conditions = append(ex.Status.Conditions, gardencorev1beta1.Condition{Type: gardencorev1beta1.ConditionType(kind), Status: gardencorev1beta1.ConditionFalse})
	}
	if err := seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	written := runWith(t, seed, 0, nil)
	if len(written) != 1 || written[0].Type != v1alpha3.ConditionNodesCleaned {
		t.Errorf("conditions %+v", written)
	}
}
