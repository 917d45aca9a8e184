package gardener

import (
	"context"
	"fmt"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/retry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcileTimeout bounds how long the extension may take for one Shoot.
const reconcileTimeout = time.Minute

// Reconcile asks the extension to reconcile the Shoots that have it, as gardenlet does by the annotation
// gardener.cloud/operation, and returns when it has done so for each; how many that are is returned too. Extensions that are
// being deleted are left alone. It is for an extension that was replaced while Shoots stay as they are: nothing but the
// extension acts. An error of the extension is reported at the latest after a minute for each Shoot.
func (e Extension) Reconcile(ctx context.Context, seed client.Client) (int, error) {
	extensions := &extensionsv1alpha1.ExtensionList{}
	if err := seed.List(ctx, extensions); err != nil {
		return 0, fmt.Errorf("list the Extensions in the seed: %w", err)
	}
	count := 0
	for i := range extensions.Items {
		extension := &extensions.Items[i]
		if extension.Spec.Type != e.Name || extension.DeletionTimestamp != nil {
			continue
		}
		count++
		if err := reconcileOne(ctx, seed, extension); err != nil {
			return count, fmt.Errorf("extension %s: %w", client.ObjectKeyFromObject(extension), err)
		}
	}
	return count, nil
}

func reconcileOne(ctx context.Context, seed client.Client, extension *extensionsv1alpha1.Extension) error {
	var before metav1.Time
	if last := extension.Status.LastOperation; last != nil {
		before = last.LastUpdateTime
	}
	// The status of before stays until the extension has seen the annotation.
	done := health.And(health.CheckExtensionObject, health.ExtensionOperationHasBeenUpdatedSince(before))

	patch := client.MergeFrom(extension.DeepCopy())
	metav1.SetMetaDataAnnotation(&extension.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	if err := seed.Patch(ctx, extension, patch); err != nil {
		return fmt.Errorf("ask for a reconciliation: %w", err)
	}
	err := retry.UntilTimeout(ctx, pollInterval, reconcileTimeout, func(ctx context.Context) (bool, error) {
		if err := seed.Get(ctx, client.ObjectKeyFromObject(extension), extension); err != nil {
			return retry.MinorError(err)
		}
		if err := done(extension); err != nil {
			return retry.MinorError(err)
		}
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("not reconciled after %s: %w", reconcileTimeout, err)
	}
	return nil
}
