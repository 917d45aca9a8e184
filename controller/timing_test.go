package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	gardenerretry "github.com/gardener/gardener/pkg/utils/retry"
	"github.com/go-logr/logr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: v1alpha3.ExtensionType}}

// delay returns the delay that the workqueue gets after a failure, and checks that it fits the kind
// of the failure.
func (l *landscape) delay(t *testing.T, kind retry.Kind) time.Duration {
	t.Helper()
	bounds := map[retry.Kind][2]time.Duration{
		retry.Failed:     {time.Millisecond, time.Second / 2},
		retry.InProgress: {time.Second, 10 * time.Second},
		retry.Unanswered: {20 * time.Second, 10 * time.Minute},
	}[kind]
	delay := l.actuator.retries.When(request)
	if delay < bounds[0] || delay > bounds[1] {
		t.Errorf("the delay is %s, want %s", delay, bounds)
	}
	return delay
}

// hang makes the shoot's API server hang, beginning with a request.
func (w *wire) hang(from int) {
	w.block = func(ctx context.Context, number int, text string) error {
		if number < from || !strings.HasPrefix(text, "shoot ") {
			return nil
		}
		<-ctx.Done()
		return &shootclient.NoAnswerError{}
	}
}

// TestHangingShootBlocksNoWorker hangs the shoot at each request of each operation. The attempt
// ends with that request.
func TestHangingShootBlocksNoWorker(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, w := newRunningLandscape(t, change.config)
				if err := change.act(l.actuator, t.Context(), l.extension(t)); err != nil {
					t.Fatal(err)
				}
				for i, request := range w.requests {
					if strings.HasPrefix(request, "shoot ") {
						hangAt(t, change, i+1, request)
					}
				}
			})
		})
	}
}

func hangAt(t *testing.T, change change, number int, request string) {
	t.Helper()
	l, w := newRunningLandscape(t, change.config)
	l.actuator.waits = defaultTiming()
	w.hang(number)
	ex, started := l.extension(t), time.Now()
	err := change.act(l.actuator, t.Context(), ex)
	if took := time.Since(started); err == nil || took > 10*time.Second {
		t.Errorf("request %d, %s: it took %s, error %v", number, request, took, err)
	}
	if len(w.requests) > number {
		t.Errorf("after the %s that hangs came %v", request, w.requests[number:])
	}
	l.delay(t, retry.Unanswered)
}

// TestWaitsBlockNoWorker checks that only the first attempt waits, and that the error describes
// what it waits for.
func TestWaitsBlockNoWorker(t *testing.T) {
	addGamma := func(c *v1alpha3.RegistryConfig) {
		c.Caches = append(c.Caches, v1alpha3.RegistryCache{Upstream: "gamma.upstream.test"})
	}
	const noService = "no service in the shoot for upstream gamma.upstream.test: ManagedResource extension-registry-cache-services cannot be applied"
	for name, test := range map[string]struct {
		config func(*v1alpha3.RegistryConfig)
		stall  func(*testing.T, *landscape)
		says   string
		kind   retry.Kind
	}{
		"a Secret that is not copied yet": {
			func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName = ptr.To("login") },
			func(t *testing.T, l *landscape) {
				l.changeShoot(t, func(shoot *gardencorev1beta1.Shoot) {
					shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{
						Name: "login", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "login-v1"},
					}}
				})
			},
			"the Secret login-v1, to which caches[0].secretReferenceName refers", retry.InProgress,
		},
		"gardener-resource-manager": {
			addGamma, func(_ *testing.T, l *landscape) { l.behind = true }, "wait for gardener-resource-manager", retry.InProgress,
		},
		"the deletion of a cleaner": {
			func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[:1] },
			func(_ *testing.T, l *landscape) { l.finalizer = "test/stays" }, "ManagedResource extension-registry-cleaner is still being deleted", retry.InProgress,
		},
		"objects that cannot be applied": {
			addGamma, func(_ *testing.T, l *landscape) { l.applyError = "exceeded quota" }, noService, retry.Failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _ := newRunningLandscape(t, test.config)
				l.actuator.waits = defaultTiming()
				test.stall(t, l)
				for _, patience := range []time.Duration{5 * time.Second, 0, 0, 0, 0} {
					started := time.Now()
					if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), test.says) {
						t.Fatalf("error = %v, want it to contain %q", err, test.says)
					}
					if took := time.Since(started); took > patience {
						t.Errorf("the attempt took %s, want %s", took, patience)
					}
					<-time.After(l.delay(t, test.kind))
				}
			})
		})
	}
}

// TestWaitIsNoError checks what the extension library reports to gardenlet after a failure. If the
// error is retriable for gardenlet, gardenlet fails the operation of the Shoot after 30 seconds.
func TestWaitIsNoError(t *testing.T) {
	for name, test := range map[string]struct {
		kind    retry.Kind
		elapsed time.Duration
		state   gardencorev1beta1.LastOperationState
		fails   bool
	}{
		"waits":               {retry.InProgress, 0, gardencorev1beta1.LastOperationStateProcessing, false},
		"waits for a minute":  {retry.InProgress, 70 * time.Second, gardencorev1beta1.LastOperationStateProcessing, false},
		"waits for too long":  {retry.InProgress, 2 * time.Minute, gardencorev1beta1.LastOperationStateError, true},
		"failed":              {retry.Failed, 0, gardencorev1beta1.LastOperationStateError, true},
		"gets no answer":      {retry.Unanswered, 0, gardencorev1beta1.LastOperationStateProcessing, false},
		"never gets one":      {retry.Unanswered, 2 * time.Minute, gardencorev1beta1.LastOperationStateError, true},
		"had failed for long": {retry.Failed, time.Hour, gardencorev1beta1.LastOperationStateError, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
				retries := l.actuator.retries
				updater := extensionscontroller.NewStatusUpdater(patientClient{l.seed, retries})
				retries.Fail(request.NamespacedName, retry.Attempt{}, test.kind)
				<-time.After(test.elapsed)
				retries.Fail(request.NamespacedName, retry.Attempt{}, test.kind)
				cause := errors.New("nodes not cleaned: worker-1")
				if err := updater.Error(t.Context(), logr.Discard(), l.extension(t), cause,
					gardencorev1beta1.LastOperationTypeReconcile, "Error reconciling Extension"); err != nil {
					t.Fatal(err)
				}
				ex := l.extension(t)
				operation, err := ex.Status.LastOperation, health.CheckExtensionObject(ex)
				if operation.State != test.state || !strings.Contains(operation.Description, cause.Error()) {
					t.Errorf("the operation is %s: %s", operation.State, operation.Description)
				}
				if err == nil || gardenerretry.IsRetriable(err) != test.fails {
					t.Errorf("gardenlet reads %v, retriable: %t", err, gardenerretry.IsRetriable(err))
				}
			})
		})
	}
}
