package main

import (
	"os"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	heartbeatcmd "github.com/gardener/gardener/extensions/pkg/controller/heartbeat/cmd"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/webhook/operatingsystemconfig"
)

// identity is the name that the extension has in leader election and heartbeats.
const identity = "gardener-extension-" + v1alpha3.ExtensionType

// options are the flags of the command, composed of those of the extension library.
type options struct {
	general    *controllercmd.GeneralOptions
	rest       *controllercmd.RESTOptions
	limits     *requestLimits
	manager    *controllercmd.ManagerOptions
	controller *controllercmd.ControllerOptions
	reconciler *controllercmd.ReconcilerOptions
	heartbeat  *heartbeatcmd.Options
	webhook    *webhookcmd.AddToManagerOptions

	all controllercmd.OptionAggregator
}

func newOptions() *options {
	o := &options{
		general: &controllercmd.GeneralOptions{},
		rest:    &controllercmd.RESTOptions{},
		limits:  &requestLimits{qps: 100, burst: 130},
		manager: &controllercmd.ManagerOptions{
			LeaderElection:          true,
			LeaderElectionID:        controllercmd.LeaderElectionNameID(identity),
			LeaderElectionNamespace: os.Getenv("LEADER_ELECTION_NAMESPACE"),
			WebhookServerPort:       10250,
			WebhookCertDir:          os.TempDir() + "/registry-cache-extension-certificates",
		},
		controller: &controllercmd.ControllerOptions{MaxConcurrentReconciles: 10},
		reconciler: &controllercmd.ReconcilerOptions{},
		heartbeat: &heartbeatcmd.Options{
			ExtensionName:        identity,
			RenewIntervalSeconds: 30,
			Namespace:            os.Getenv("LEADER_ELECTION_NAMESPACE"),
		},
	}
	o.webhook = webhookcmd.NewAddToManagerOptions(
		v1alpha3.ExtensionType, // the webhook configuration and its Service are gardener-extension-<this>
		"", nil,                // no webhook in the shoot
		o.general,
		&webhookcmd.ServerOptions{Namespace: os.Getenv("WEBHOOK_CONFIG_NAMESPACE")},
		webhookcmd.NewSwitchOptions(webhookcmd.Switch(operatingsystemconfig.Name, operatingsystemconfig.New)),
	)
	o.all = controllercmd.NewOptionAggregator(
		o.general, o.rest, o.limits, o.manager, o.controller, o.reconciler,
		controllercmd.PrefixOption("heartbeat-", o.heartbeat),
		o.webhook,
	)
	return o
}

// complete validates the parsed flags.
func (o *options) complete() error {
	if err := o.all.Complete(); err != nil {
		return err
	}
	return o.heartbeat.Validate()
}
