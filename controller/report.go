package controller

import (
	"context"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// errorAfter is how long an operation that waits, also for an answer, is reported as in progress.
// gardenlet fails the Shoot's operation if it sees an error 30 seconds after it has triggered the
// extension, but waits three minutes for an operation in progress. So the error must appear before
// that.
const errorAfter = 2 * time.Minute

// waiting begins the description of an operation that waits.
const waiting = "Waiting: "

// patientManager is a manager whose client reports an operation that waits as in progress, not as
// failed. The extension library knows only success and failure.
type patientManager struct {
	manager.Manager
	retries *retry.Limiter
}

func (m patientManager) GetClient() client.Client {
	return patientClient{m.Manager.GetClient(), m.retries}
}

type patientClient struct {
	client.Client
	retries *retry.Limiter
}

func (c patientClient) Status() client.SubResourceWriter {
	return patientStatus{c.Client.Status(), c.retries}
}

type patientStatus struct {
	client.SubResourceWriter
	retries *retry.Limiter
}

// Patch writes the status of an Extension whose operation waits without an error. What is waited
// for is in the description of the operation.
func (s patientStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if ex, ok := object.(*extensionsv1alpha1.Extension); ok && s.waits(ex) {
		ex.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
		if _, cause, found := strings.Cut(ex.Status.LastError.Description, ": "); found {
			ex.Status.LastOperation.Description = waiting + cause
		}
		ex.Status.LastError = nil
	}
	return s.SubResourceWriter.Patch(ctx, object, patch, options...)
}

func (s patientStatus) waits(ex *extensionsv1alpha1.Extension) bool {
	operation := ex.Status.LastOperation
	if operation == nil || operation.State != gardencorev1beta1.LastOperationStateError || ex.Status.LastError == nil {
		return false
	}
	return time.Since(s.retries.WaitingSince(client.ObjectKeyFromObject(ex))) < errorAfter
}
