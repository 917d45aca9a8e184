package gardener

import (
	"context"
	"errors"
	"sync"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requeueInterval is the time between two requests. Each costs gardener-resource-manager a few API
// calls if a deletion is pending.
const requeueInterval = time.Second

// RequeueDeletions makes gardener-resource-manager check pending deletions in the namespace every
// requeueInterval, until stop is called. stop returns when all its work has ended. By itself,
// gardener-resource-manager requeues only after five seconds (v1.147.1,
// RequeueAfterOnDeletionPending, which cannot be configured), even if a single Secret was replaced;
// a flow would wait for that up to four times in a row. Errors are ignored, since the requeue still
// happens.
func RequeueDeletions(ctx context.Context, seed client.Client, namespace string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { _ = requeuePending(ctx, seed, namespace) }, requeueInterval)
	})
	return func() {
		cancel()
		background.Wait()
	}
}

// requeuePending annotates the ManagedResources whose deletion is pending, for reconciliation.
func requeuePending(ctx context.Context, seed client.Client, namespace string) error {
	resources := &resourcesv1alpha1.ManagedResourceList{}
	if err := seed.List(ctx, resources, client.InNamespace(namespace)); err != nil {
		return err
	}
	var errs []error
	for i := range resources.Items {
		mr := &resources.Items[i]
		if !deletionPending(mr) {
			continue
		}
		patch := client.MergeFrom(mr.DeepCopy())
		metav1.SetMetaDataAnnotation(&mr.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
		errs = append(errs, seed.Patch(ctx, mr, patch))
	}
	return errors.Join(errs...)
}

// deletionPending reports whether gardener-resource-manager waits for deletions in the target
// cluster.
func deletionPending(mr *resourcesv1alpha1.ManagedResource) bool {
	applied := v1beta1helper.GetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	return applied != nil && applied.Reason == resourcesv1alpha1.ConditionDeletionPending
}
