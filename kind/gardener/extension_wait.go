package gardener

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/retry"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Wait returns when the extension's release is applied, its pods are ready, and its webhooks are registered with a
// certificate authority; or an error, at the latest after four minutes.
func (e Extension) Wait(ctx context.Context, seed client.Client) error {
	defer Hurry(ctx, seed, GardenNamespace)()
	applied, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := retry.Until(applied, pollInterval, func(ctx context.Context) (bool, error) {
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
	registration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gardener-extension-" + e.Name}}
	if err := waitForRegistration(ctx, seed, registration); err != nil {
		return fmt.Errorf("extension %s: %w", e.Name, err)
	}
	return nil
}

// Namespace is where the extension runs.
func (e Extension) Namespace() string { return "extension-" + e.Name }
