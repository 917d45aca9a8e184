package gardener

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/extensions/pkg/webhook"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/retry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rolloutTimeout bounds how long a Deployment may take to become available. Its image is already on
// the node.
const rolloutTimeout = 2 * time.Minute

// pollInterval is short, since everything polled is on this machine.
const pollInterval = 200 * time.Millisecond

// waitForDeployment returns when the Deployment has rolled out, is available, and no previous pod
// is left: a leading pod keeps working with its old configuration until it has terminated. After
// rolloutTimeout it returns an error with what is missing and why containers of its pods are
// waiting.
func waitForDeployment(ctx context.Context, c client.Reader, key client.ObjectKey) error {
	deployment := &appsv1.Deployment{}
	err := poll(ctx, rolloutTimeout, func(ctx context.Context) error {
		if err := c.Get(ctx, key, deployment); err != nil {
			return err
		}
		if progressing, reason := health.IsDeploymentProgressing(deployment); progressing {
			return errors.New(reason)
		}
		if err := health.CheckDeployment(deployment); err != nil {
			return err
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
		return fmt.Errorf("deployment %s is not available after %s: %w%s", key, rolloutTimeout, err, waitingContainers(ctx, c, deployment))
	}
	return nil
}

// podsOf returns the pods that match the Deployment's selector; none without a selector.
func podsOf(ctx context.Context, c client.Reader, deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	if deployment.Spec.Selector == nil {
		return nil, nil
	}
	pods := &corev1.PodList{}
	err := c.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	return pods.Items, err
}

// waitingContainers returns why containers of the Deployment's pods are waiting; "" if none is.
func waitingContainers(ctx context.Context, c client.Reader, deployment *appsv1.Deployment) string {
	pods, _ := podsOf(ctx, c, deployment) // it only adds detail to an error
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

// poll calls check until it returns nil. After timeout it returns an error with check's last one.
func poll(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	return retry.UntilTimeout(ctx, pollInterval, timeout, func(ctx context.Context) (bool, error) {
		if err := check(ctx); err != nil {
			return retry.MinorError(err)
		}
		return retry.Ok()
	})
}

// registrationTimeout bounds how long a ready component may take to register its webhooks.
const registrationTimeout = time.Minute

// waitForRegistration returns when the webhook configuration has a CA bundle. The component creates
// the configuration itself and sets the bundle in all of its webhooks at once. It fails after
// registrationTimeout, or at once if configuration is another kind of object.
func waitForRegistration(ctx context.Context, c client.Reader, configuration client.Object) error {
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
