// Package webhook registers the webhooks of the extension and of its admission at the API server.
//
// The packages below contain what the webhooks check or change.
package webhook

import (
	"context"
	"fmt"
	"strings"
	"time"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	"github.com/gardener/gardener/extensions/pkg/webhook/certificates"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	"github.com/gardener/gardener/pkg/utils/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	registrationInterval = time.Second
	registrationTimeout  = 5 * time.Second
)

// AddToManager serves the webhooks of the config. The leader registers them in the manager's
// cluster as gardener-extension-<name>, and rotates their certificates in the Secrets of the source
// cluster, or of the manager's cluster if source is nil. The leader's manager ends if it cannot
// register them within registrationTimeout. Without a namespace for certificates, AddToManager only
// calls AddToManager of the config.
//
// It replaces AddToManager of the config, which lets two goroutines of a new leader use one object
// (gardener v1.150.0): while one reads the registration into it, the other takes the webhooks from
// it. If the object is empty at that moment, the registration lacks webhooks for five minutes.
func AddToManager(ctx context.Context, mgr manager.Manager, source cluster.Cluster, name string, config *webhookcmd.AddToManagerConfig) error {
	server := config.Server
	if server.Namespace == "" { // only one goroutine registers
		_, err := config.AddToManager(ctx, mgr, source)
		return err
	}
	webhooks, err := config.Switch.WebhooksFactory(mgr)
	if err != nil {
		return fmt.Errorf("create the webhooks: %w", err)
	}
	for _, wh := range webhooks {
		mgr.GetWebhookServer().Register("/"+strings.TrimPrefix(wh.Path, "/"), wh.Webhook)
	}
	registered, _, err := extensionswebhook.BuildWebhookConfigs(webhooks, mgr.GetClient(), server.Namespace, name, false,
		servicePort(mgr, server), server.Mode, server.URL, nil, false)
	if err != nil {
		return fmt.Errorf("build the webhook configurations: %w", err)
	}
	if err := mgr.Add(register(mgr, registered.DeepCopy(), server.OwnerNamespace)); err != nil {
		return err
	}
	return certificates.AddCertificateManagementToManager(ctx, mgr, source, clock.RealClock{}, registered,
		nil, nil, nil, "", name, false, server.Namespace, server.Mode, server.URL)
}

// register returns a function that a leader runs once. It registers the webhooks, with the
// namespace as owner. It keeps the CA bundle, which the certificate management sets.
func register(mgr manager.Manager, configs *extensionswebhook.Configs, namespace string) manager.RunnableFunc {
	return func(ctx context.Context) error {
		return retry.UntilTimeout(ctx, registrationInterval, registrationTimeout, func(ctx context.Context) (bool, error) {
			for _, config := range configs.DeepCopy().GetWebhookConfigs() {
				if err := extensionswebhook.ReconcileSeedWebhookConfig(ctx, mgr.GetClient(), config, namespace, nil); err != nil {
					return retry.MinorError(err)
				}
			}
			return retry.Ok()
		})
	}
}

// servicePort returns the port at which the API server calls the webhooks.
func servicePort(mgr manager.Manager, config webhookcmd.ServerConfig) int {
	if config.Mode != extensionswebhook.ModeURL && config.ServicePort > 0 {
		return config.ServicePort
	}
	if server, ok := mgr.GetWebhookServer().(*webhook.DefaultServer); ok {
		return server.Options.Port
	}
	return 0
}
