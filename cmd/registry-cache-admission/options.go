package main

import (
	"os"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"

	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

// identity is part of the names of the webhook configuration
// (gardener-extension-registry-cache-admission), its Service and its Lease.
const identity = "registry-cache-admission"

// options are the flags of `serve`, composed of those of the extension library.
type options struct {
	rest    *controllercmd.RESTOptions
	manager *controllercmd.ManagerOptions
	webhook *webhookcmd.AddToManagerOptions

	all controllercmd.OptionAggregator
}

func newOptions() *options {
	o := &options{
		rest: &controllercmd.RESTOptions{},
		manager: &controllercmd.ManagerOptions{
			LeaderElection:          true,
			LeaderElectionID:        controllercmd.LeaderElectionNameID("gardener-extension-" + identity),
			LeaderElectionNamespace: os.Getenv("LEADER_ELECTION_NAMESPACE"),
			WebhookServerPort:       10250,
			WebhookCertDir:          os.TempDir() + "/registry-cache-admission-certificates",
		},
	}
	o.webhook = webhookcmd.NewAddToManagerOptions(
		identity,
		"", nil, // no webhook in shoots
		nil,
		&webhookcmd.ServerOptions{Namespace: os.Getenv("WEBHOOK_CONFIG_NAMESPACE")},
		webhookcmd.NewSwitchOptions(webhookcmd.Switch(shoot.Name, shoot.New)),
	)
	o.all = controllercmd.NewOptionAggregator(o.rest, o.manager, o.webhook)
	return o
}

// complete validates the parsed flags and applies their defaults.
func (o *options) complete() error {
	if o.rest.Kubeconfig == "" {
		// gardener-operator mounts a kubeconfig for the virtual garden into the pod, and sets this
		// variable to its path.
		o.rest.Kubeconfig = os.Getenv("GARDEN_KUBECONFIG")
	}
	return o.all.Complete()
}
