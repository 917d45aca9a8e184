package gardener

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/retry"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookTimeout bounds how long an extension that is ready may take to register its webhooks.
const webhookTimeout = time.Minute

// Wait returns when the extension's release is applied, its pods are ready, and its webhooks are registered with a
// certificate authority; or an error, at the latest after four minutes.
func (e Extension) Wait(ctx context.Context, seed client.Client) error {
	applied, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := retry.Until(applied, time.Second, func(ctx context.Context) (bool, error) {
		if err := managedresources.WaitUntilHealthy(ctx, seed, GardenNamespace, e.Name); err != nil {
			return retry.MinorError(err)
		}
		return retry.Ok()
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for extension %s: %w", e.Name, err)
	}
	// Also after an error: the Deployments tell best what is wrong.
	deployments := &appsv1.DeploymentList{}
	if err := seed.List(ctx, deployments, client.InNamespace(e.Namespace())); err != nil {
		return fmt.Errorf("list the deployments of extension %s: %w", e.Name, err)
	}
	for _, deployment := range deployments.Items {
		if err := waitForDeployment(ctx, seed, client.ObjectKeyFromObject(&deployment)); err != nil {
			return fmt.Errorf("extension %s: %w", e.Name, err)
		}
	}
	if err != nil {
		return fmt.Errorf("managed resource %s/%s of extension %s: %w", GardenNamespace, e.Name, e.Name, err)
	}
	return e.waitForWebhooks(ctx, seed)
}

// Namespace is where the extension runs.
func (e Extension) Namespace() string { return "extension-" + e.Name }

func (e Extension) waitForWebhooks(ctx context.Context, seed client.Reader) error {
	key := client.ObjectKey{Name: "gardener-extension-" + e.Name}
	err := retry.UntilTimeout(ctx, time.Second, webhookTimeout, func(ctx context.Context) (bool, error) {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := seed.Get(ctx, key, configuration); err != nil {
			return retry.MinorError(err)
		}
		for _, webhook := range configuration.Webhooks {
			if len(webhook.ClientConfig.CABundle) == 0 {
				return retry.MinorError(fmt.Errorf("webhook %s has no certificate authority", webhook.Name))
			}
		}
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("extension %s has not registered its webhooks as MutatingWebhookConfiguration %s after %s: %w", e.Name, key.Name, webhookTimeout, err)
	}
	return nil
}
