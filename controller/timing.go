package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/controller/retry"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// timing contains the limits of one attempt of an operation, and how long the actuator waits for
// nodes that may never be clean. No wait blocks a worker for longer than an attempt: the next
// attempt continues, and reads from objects when the wait began.
type timing struct {
	limit    time.Duration // the limit of an attempt, without the requests of the extension library
	patience time.Duration // total wait of the first attempt, so that a quick shoot needs no second one; later attempts look once
	interval time.Duration // the longest pause between two checks of an attempt
	// skipAfter is how long the cleaner runs, or nodes are not ready, before a clean-up skips the
	// nodes that are left. The loop on such a node detects that the cache is gone.
	skipAfter time.Duration
}

func defaultTiming() timing {
	return timing{limit: 9 * time.Second, patience: 5 * time.Second, interval: time.Second, skipAfter: time.Minute}
}

const (
	reportedFor  = 10 * time.Second // the age of a cleaner up to which its DaemonSet's status is relied on, if the shoot is not small
	volumesLimit = 2 * time.Minute  // how long the deletion waits for a volume
	delayedLimit = time.Minute      // how long a new cache waits for the deletion of its upstream's earlier one
	rolloutLimit = 30 * time.Second // how long nodes keep the previous CA while caches lack their new certificate
)

// previousFor is how long a Service also exists under its previous name after it has been renamed.
// Nodes use the previous address until they apply the OperatingSystemConfig that gardenlet writes
// after this reconciliation.
const previousFor = time.Hour

// run is one attempt of an operation on the Extension. It ends within the limit, and records the
// kind of failure, which determines when the next attempt follows.
func (a *Actuator) run(ctx context.Context, ex *extensionsv1alpha1.Extension, operation string, do func(context.Context) error) error {
	object, attempt := client.ObjectKeyFromObject(ex), retry.Attempt{Generation: ex.Generation, Operation: operation}
	limited, cancel := context.WithTimeout(ctx, a.waits.limit)
	defer cancel()
	if a.retries.IsFirst(object, attempt) {
		limited = context.WithValue(limited, patienceKey{}, time.Now().Add(a.waits.patience))
	}
	err := do(limited)
	if err == nil {
		return nil // the workqueue forgets earlier failures
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = retry.Waiting(fmt.Errorf("not finished within %s, the next attempt continues: %w", a.waits.limit, err))
	}
	kind := retry.Failed
	switch {
	case shootclient.IsNoAnswer(err):
		kind = retry.Unanswered
	case retry.IsWaiting(err) && !errors.Is(err, errNotApplicable):
		kind = retry.InProgress
	}
	a.retries.Fail(object, attempt, kind)
	return err
}

// patienceKey is the key of the time up to which an attempt may wait. Only the first attempt has
// one.
type patienceKey struct{}

// await calls look until it returns nil or an error that does not mean waiting, or until the
// patience of the attempt is over. It returns the last error.
func (a *Actuator) await(ctx context.Context, look func() error) error {
	for pause := a.waits.interval / 4; ; pause = min(2*pause, a.waits.interval) {
		err := look()
		if !retry.IsWaiting(err) || !pauseFor(ctx, pause) {
			return err
		}
	}
}

// pauseFor waits and returns true, or returns false if the attempt must not wait that long.
func pauseFor(ctx context.Context, pause time.Duration) bool {
	if !isPatient(ctx, pause) {
		return false
	}
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

func isPatient(ctx context.Context, pause time.Duration) bool {
	until, first := ctx.Value(patienceKey{}).(time.Time)
	return first && time.Until(until) >= pause
}

// errorAfter is how long an operation that waits, even for an answer, is reported as in progress.
// gardenlet fails the Shoot's operation if it sees an error 30 seconds after it has triggered the
// extension, but waits three minutes for an operation in progress. So the error must appear
// earlier.
const errorAfter = 2 * time.Minute

// waiting is the prefix of the description of an operation that waits.
const waiting = "Waiting: "

// patientManager is a manager whose client reports an operation that waits as in progress, not as
// failed. The extension library distinguishes only success and failure.
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

// Patch writes the status of an Extension. Until errorAfter, it replaces the error of a waiting
// operation with a description of what it waits for.
func (s patientStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	ex, ok := object.(*extensionsv1alpha1.Extension)
	failed := ok && ex.Status.LastError != nil && ex.Status.LastOperation != nil &&
		ex.Status.LastOperation.State == gardencorev1beta1.LastOperationStateError
	if failed && time.Since(s.retries.WaitingSince(client.ObjectKeyFromObject(ex))) < errorAfter {
		ex.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
		if _, cause, found := strings.Cut(ex.Status.LastError.Description, ": "); found {
			ex.Status.LastOperation.Description = waiting + cause
		}
		ex.Status.LastError = nil
	}
	return s.SubResourceWriter.Patch(ctx, object, patch, options...)
}
