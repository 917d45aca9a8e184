package landscape

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/bench/load"
)

// Webhook returns where the extension registered its webhook.
func (l *Landscape) Webhook(ctx context.Context) (load.Webhook, error) {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := l.seed.Get(ctx, client.ObjectKey{Name: "gardener-extension-" + ExtensionName}, configuration); err != nil {
		return load.Webhook{}, fmt.Errorf("reading where the webhook is: %w", err)
	}
	for _, webhook := range configuration.Webhooks {
		if url := webhook.ClientConfig.URL; url != nil {
			return load.Webhook{URL: *url, CABundle: webhook.ClientConfig.CABundle}, nil
		}
	}
	return load.Webhook{}, errors.New("the extension registered no webhook by URL")
}
