package gardener

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/retry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rolloutTimeout bounds how long a Deployment of the testbed may take from being applied to being available. Its image
// is on the node already.
const rolloutTimeout = 2 * time.Minute

// pollInterval is short: everything polled is on this machine.
const pollInterval = 200 * time.Millisecond

// waitForDeployment returns when the Deployment has rolled out, is available, and no pod of before is left: one that leads goes
// on with what it was told until it has ended. The error after rolloutTimeout says what is missing and, if a container of its
// pods does not run, why.
func waitForDeployment(ctx context.Context, c client.Reader, key client.ObjectKey) error {
	deployment := &appsv1.Deployment{}
	err := retry.UntilTimeout(ctx, pollInterval, rolloutTimeout, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, key, deployment); err != nil {
			return retry.MinorError(err)
		}
		if progressing, reason := health.IsDeploymentProgressing(deployment); progressing {
			return retry.MinorError(errors.New(reason))
		}
		if err := health.CheckDeployment(deployment); err != nil {
			return retry.MinorError(err)
		}
		if err := noPodEnds(ctx, c, deployment); err != nil {
			return retry.MinorError(err)
		}
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("deployment %s is not available after %s: %w%s", key, rolloutTimeout, err, waitingContainers(ctx, c, deployment))
	}
	return nil
}

// noPodEnds returns an error that names a pod of the Deployment that is being deleted, if there is one.
func noPodEnds(ctx context.Context, c client.Reader, deployment *appsv1.Deployment) error {
	if deployment.Spec.Selector == nil {
		return nil
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s has not ended yet", pod.Name)
		}
	}
	return nil
}

// waitingContainers tells for each container of the Deployment's pods that does not run why that is so; "" if all run.
func waitingContainers(ctx context.Context, c client.Reader, deployment *appsv1.Deployment) string {
	if deployment.Spec.Selector == nil {
		return ""
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return ""
	}
	var reasons string
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil {
				reasons += fmt.Sprintf("; pod %s: %s: %s", pod.Name, waiting.Reason, waiting.Message)
			}
		}
	}
	return reasons
}
