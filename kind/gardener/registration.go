package gardener

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/extensions/pkg/webhook"
	"github.com/gardener/gardener/pkg/utils/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// registrationTimeout bounds how long a component that is ready may take to register its webhooks.
const registrationTimeout = time.Minute

// waitForRegistration returns when the configuration of webhooks, which the component itself writes, has a certificate
// authority, which the component puts into all of its webhooks at once. An error comes after registrationTimeout, and at once
// for another object.
func waitForRegistration(ctx context.Context, c client.Reader, configuration client.Object) error {
	err := retry.UntilTimeout(ctx, pollInterval, registrationTimeout, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); err != nil {
			return retry.MinorError(err)
		}
		authority, err := webhook.GetCABundleFromWebhookConfig(configuration)
		if err != nil {
			return retry.SevereError(err)
		}
		if len(authority) == 0 {
			return retry.MinorError(errors.New("its webhooks have no certificate authority"))
		}
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("wait up to %s until webhook configuration %s is registered: %w", registrationTimeout, configuration.GetName(), err)
	}
	return nil
}
