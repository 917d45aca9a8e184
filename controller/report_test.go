package controller

import (
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

	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// TestWaitIsNoError checks what the extension library reports to gardenlet after a failure. If the
// error is retriable for gardenlet, it fails the operation of the Shoot after 30 seconds.
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
