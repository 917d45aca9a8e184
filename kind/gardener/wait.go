package gardener

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/gardener/extensions/pkg/webhook"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/retry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// rolloutTimeout bounds the rollout of a Deployment whose image is already on the node.
	rolloutTimeout      = 2 * time.Minute
	registrationTimeout = time.Minute // for a ready component to register its webhooks
	// pollInterval is short, since everything polled is on this machine.
	pollInterval = 200 * time.Millisecond
)

// WaitForDeployment returns when the Deployment has rolled out, is available, and has no
// terminating pod, which would still use its old configuration. After rolloutTimeout the error
// describes what is missing and why containers wait.
func WaitForDeployment(ctx context.Context, c client.Reader, key client.ObjectKey) error {
	deployment := &appsv1.Deployment{}
	err := Poll(ctx, rolloutTimeout, fmt.Sprintf("deployment %s is not available", key), func(ctx context.Context) error {
		if err := c.Get(ctx, key, deployment); err != nil {
			return err
		}
		if progressing, reason := health.IsDeploymentProgressing(deployment); progressing {
			return errors.New(reason)
		}
		if err := health.CheckDeployment(deployment); err != nil {
			return err
		}
		// The condition is outdated for a moment when the Deployment goes back to an earlier template:
		// the controller reuses the ReplicaSet, and first keeps the reason NewReplicaSetAvailable.
		if updated := deployment.Status.UpdatedReplicas; updated != ptr.Deref(deployment.Spec.Replicas, 1) || deployment.Status.Replicas != updated {
			return fmt.Errorf("%d of %d replicas are updated", updated, deployment.Status.Replicas)
		}
		pods, err := podsOf(ctx, c, deployment)
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s has not terminated yet", pod.Name)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w%s", err, waitingContainers(ctx, c, deployment))
	}
	return nil
}

func podsOf(ctx context.Context, c client.Reader, deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	if deployment.Spec.Selector == nil {
		return nil, nil
	}
	pods := &corev1.PodList{}
	err := c.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	return pods.Items, err
}

// waitingContainers returns why containers of the Deployment's pods are waiting, or "" if none is.
func waitingContainers(ctx context.Context, c client.Reader, deployment *appsv1.Deployment) string {
	pods, _ := podsOf(ctx, c, deployment) // ignore the error: the pods only add detail
	var reasons string
	for _, pod := range pods {
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil {
				reasons += fmt.Sprintf("; pod %s: %s: %s", pod.Name, waiting.Reason, waiting.Message)
			}
		}
	}
	return reasons
}

// Poll calls the function check five times a second until check returns nil. After the timeout, the
// error is "<failure> after <timeout>: <last error of check>".
func Poll(ctx context.Context, timeout time.Duration, failure string, check func(context.Context) error) error {
	err := retry.UntilTimeout(ctx, pollInterval, timeout, func(ctx context.Context) (bool, error) {
		if err := check(ctx); err != nil {
			return retry.MinorError(err)
		}
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("%s after %s: %w", failure, timeout, err)
	}
	return nil
}

// WaitForRegistration returns when the webhook configuration has a CA bundle. The component creates
// the configuration itself and sets the bundle in all of its webhooks at once. The function fails
// after registrationTimeout, or at once if configuration is not a webhook configuration.
func WaitForRegistration(ctx context.Context, c client.Reader, configuration client.Object) error {
	err := retry.UntilTimeout(ctx, pollInterval, registrationTimeout, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); err != nil {
			return retry.MinorError(err)
		}
		ca, err := webhook.GetCABundleFromWebhookConfig(configuration)
		if err != nil {
			return retry.SevereError(err)
		}
		if len(ca) == 0 {
			return retry.MinorError(errors.New("its webhooks have no CA bundle"))
		}
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("wait up to %s until webhook configuration %s is registered: %w", registrationTimeout, configuration.GetName(), err)
	}
	return nil
}

// requeueInterval is the interval of RequeueDeletions. If deletions are pending, each round costs a
// few API calls.
const requeueInterval = 500 * time.Millisecond

// RequeueDeletions makes gardener-resource-manager check pending deletions in the namespace every
// requeueInterval, until stop is called. stop waits until the last check request has ended. By
// itself, gardener-resource-manager checks again only after five seconds (v1.150.0,
// RequeueAfterOnDeletionPending, which cannot be configured). A flow would wait this long up to
// four times. Errors are ignored: gardener-resource-manager checks again anyway.
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

// requeuePending triggers a reconciliation of ManagedResources that wait for objects to be deleted.
func requeuePending(ctx context.Context, seed client.Client, namespace string) error {
	resources := &resourcesv1alpha1.ManagedResourceList{}
	if err := seed.List(ctx, resources, client.InNamespace(namespace)); err != nil {
		return err
	}
	var errs []error
	for _, mr := range resources.Items {
		if !deletionPending(&mr) {
			continue
		}
		patch := client.MergeFrom(mr.DeepCopy())
		metav1.SetMetaDataAnnotation(&mr.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
		errs = append(errs, seed.Patch(ctx, &mr, patch))
	}
	return errors.Join(errs...)
}

func deletionPending(mr *resourcesv1alpha1.ManagedResource) bool {
	applied := v1beta1helper.GetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	return applied != nil && applied.Reason == resourcesv1alpha1.ConditionDeletionPending
}
