// Command registry-cache-admission validates Shoots that use the extension of type registry-cache.
// `serve` is the webhook in the garden, and `validate` does the same offline.
//
// Package webhook/shoot contains the rules. This package wires packages together, and finds the old
// Shoot and the referenced Secrets in files.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/webhook"
	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

const serveHelp = `Serve the webhook that validates Shoots.

--kubeconfig, or the environment variable GARDEN_KUBECONFIG, which gardener-operator sets, names the kubeconfig of the
cluster with the Shoots. The Lease and the webhook certificates are in the cluster that the pod runs in. The command
creates and rotates the certificates.`

// requestsPerSecond limits requests to the garden. client-go's default of 5 is too low.
const requestsPerSecond = 100

func newServeCommand() *cobra.Command {
	options := newOptions()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the webhook that validates Shoots",
		Long:  serveHelp,
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.complete(); err != nil {
				return program.Usage(fmt.Errorf("invalid flags: %w", err))
			}
			return serve(cmd.Context(), options)
		},
	}
	options.all.AddFlags(cmd.Flags())
	return cmd
}

// serve runs until the context ends or a permanent error occurs.
func serve(ctx context.Context, options *options) error {
	log.SetLogger(options.manager.Completed().Logger)
	garden := rest.CopyConfig(options.rest.Completed().Config)
	garden.QPS, garden.Burst = requestsPerSecond, 2*requestsPerSecond
	runtimeConfig, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		runtimeConfig, err = garden, nil // for development
	}
	if err != nil {
		return program.Environment(fmt.Errorf("load the in-cluster configuration: %w", err))
	}
	mgr, err := newManager(options, garden, runtimeConfig)
	if err != nil {
		return err
	}
	runtimeCluster, err := newRuntimeCluster(runtimeConfig)
	if err != nil {
		return err
	}
	if err := mgr.Add(runtimeCluster); err != nil {
		return fmt.Errorf("add the runtime cluster to the manager: %w", err)
	}
	if err := webhook.AddToManager(ctx, mgr, runtimeCluster, identity, options.webhook.Completed()); err != nil {
		return fmt.Errorf("add the webhook to the manager: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

// newManager returns a manager for the cluster with the Shoots. It caches nothing: reads are rare,
// and a cache would contain every Secret of the garden and need permission to list them.
func newManager(options *options, garden, runtimeConfig *rest.Config) (manager.Manager, error) {
	managerOptions := options.manager.Completed().Options()
	managerOptions.LeaderElectionConfig = runtimeConfig
	// serve ends with the manager. Releasing the lease lets another replica take over at once, not
	// after 15 seconds.
	managerOptions.LeaderElectionReleaseOnCancel = true
	managerOptions.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
		&corev1.Secret{},
		&corev1.Namespace{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{},
	}}
	managerOptions.Scheme = runtime.NewScheme()
	types := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme)
	if err := types.AddToScheme(managerOptions.Scheme); err != nil {
		return nil, fmt.Errorf("add the types of Kubernetes and Gardener to the scheme: %w", err)
	}
	mgr, err := manager.New(garden, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("webhook-server", mgr.GetWebhookServer().StartedChecker()),
	); err != nil {
		return nil, fmt.Errorf("add the health and readiness checks to the manager: %w", err)
	}
	return mgr, nil
}

// newRuntimeCluster returns a client for the pod's Lease and certificates, without a cache.
func newRuntimeCluster(config *rest.Config) (cluster.Cluster, error) {
	runtimeCluster, err := cluster.New(config, func(options *cluster.Options) {
		options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	})
	if err != nil {
		return nil, fmt.Errorf("create a client for the runtime cluster: %w", err)
	}
	return runtimeCluster, nil
}

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
		// gardener-operator sets this variable to the path of a kubeconfig for the virtual garden.
		o.rest.Kubeconfig = os.Getenv("GARDEN_KUBECONFIG")
	}
	return o.all.Complete()
}

func main() { os.Exit(program.Main(newRootCommand)) }

func newRootCommand(std program.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:     "registry-cache-admission",
		Short:   "Validate Shoots that use the registry cache, in the garden and offline",
		Version: program.Version(),
		Args:    cobra.ArbitraryArgs,
		RunE:    program.Verbs,
	}
	root.AddCommand(newServeCommand(), newValidateCommand(std, os.Stdin))
	return root
}
