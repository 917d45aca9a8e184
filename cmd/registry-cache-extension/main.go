// Command registry-cache-extension runs the parts of the extension on a seed: the controller and
// health checks for Extensions of type registry-cache, the webhook for OperatingSystemConfigs, and
// gardenlet's heartbeat.
//
// It only wires packages together. It has the flags of every Gardener extension (see --help),
// limits for requests to the seed (--kube-api-qps, --kube-api-burst), and --health-check-period.
// LEADER_ELECTION_NAMESPACE and WEBHOOK_CONFIG_NAMESPACE set the namespaces of leader election,
// heartbeat and webhook. IMAGEVECTOR_OVERWRITE is the path of a file with other images. In
// development, WEBHOOK_CONFIG_NAMESPACE may be missing: the webhook certificates are then created
// at startup and never rotated.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	"github.com/gardener/gardener/extensions/pkg/controller/heartbeat"
	heartbeatcmd "github.com/gardener/gardener/extensions/pkg/controller/heartbeat/cmd"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	gardenerhealthz "github.com/gardener/gardener/pkg/healthz"
	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/controller"
	"github.com/gardener-extensions/registry-cache/controller/health"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/webhook"
	"github.com/gardener-extensions/registry-cache/webhook/operatingsystemconfig"
)

func main() { os.Exit(program.Main(newCommand)) }

func newCommand(program.Streams) *cobra.Command {
	options := newOptions()
	cmd := &cobra.Command{
		Use:     "registry-cache-extension",
		Short:   "Gardener extension that runs pull-through image caches in shoots",
		Version: program.Version(),
		Args:    program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.complete(); err != nil {
				return program.Usage(fmt.Errorf("invalid flags: %w", err))
			}
			return run(cmd.Context(), options)
		},
	}
	options.all.AddFlags(cmd.Flags())
	return cmd
}

// run starts the manager. It returns when the context ends or a permanent error occurs.
func run(ctx context.Context, options *options) error {
	var err error
	if options.images, err = charts.LoadImages(); err != nil {
		return err
	}
	log.SetLogger(options.manager.Completed().Logger)
	if err := countRequests(options.rest.Completed().Config); err != nil {
		return err
	}
	mgr, err := newManager(options)
	if err != nil {
		return err
	}
	if err := addChecks(mgr); err != nil {
		return err
	}
	if err := options.controllers.Completed().AddToManager(ctx, mgr); err != nil {
		return fmt.Errorf("add the controllers to the manager: %w", err)
	}
	if err := webhook.AddToManager(ctx, mgr, nil, v1alpha3.ExtensionType, options.webhook.Completed()); err != nil {
		return fmt.Errorf("add the webhook to the manager: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func newManager(options *options) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	managerOptions := options.manager.Completed().Options()
	managerOptions.Scheme = scheme
	// run ends with the manager. Releasing the lease lets another replica take over at once, not after
	// 15 seconds.
	managerOptions.LeaderElectionReleaseOnCancel = true
	managerOptions.Cache = cacheOptions()
	// The client reads these kinds rarely, so it needs no cache. A cache would contain the Secrets of
	// all shoots, and the ClusterRole would have to allow watching them.
	managerOptions.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
		&corev1.Secret{},
		&coordinationv1.Lease{},
		&admissionregistrationv1.MutatingWebhookConfiguration{},
	}}
	mgr, err := manager.New(options.limits.applyTo(options.rest.Completed().Config), managerOptions)
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return mgr, nil
}

// newScheme returns a scheme with the types of Kubernetes and Gardener. The manager needs it from
// the start, because cacheOptions uses some of these types.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(kubernetesscheme.AddToScheme, extensionscontroller.AddToScheme)
	if err := types.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("add the types of Kubernetes and Gardener to the scheme: %w", err)
	}
	return scheme, nil
}

func addChecks(mgr manager.Manager) error {
	synced := gardenerhealthz.NewCacheSyncHealthzWithDeadline(
		mgr.GetLogger(), clock.RealClock{}, mgr.GetCache(), gardenerhealthz.DefaultCacheSyncDeadline)
	if err := errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddHealthzCheck("informer-sync", synced),
		mgr.AddReadyzCheck("informer-sync", gardenerhealthz.NewCacheSyncHealthz(mgr.GetCache())),
		mgr.AddReadyzCheck("webhook-server", mgr.GetWebhookServer().StartedChecker()),
	); err != nil {
		return fmt.Errorf("add the health and readiness checks to the manager: %w", err)
	}
	return nil
}

func (o *options) addHeartbeat(_ context.Context, mgr manager.Manager) error {
	beat := o.heartbeat.Completed()
	return heartbeat.Add(mgr, heartbeat.AddArgs{
		ExtensionName:        beat.ExtensionName,
		Namespace:            beat.Namespace,
		RenewIntervalSeconds: beat.RenewIntervalSeconds,
		Clock:                clock.RealClock{},
	})
}

func (o *options) addController(ctx context.Context, mgr manager.Manager) error {
	return controller.AddToManager(ctx, mgr, controller.Options{
		Controller:                o.controller.Completed().Options(),
		IgnoreOperationAnnotation: o.reconciler.Completed().IgnoreOperationAnnotation,
		ExtensionClasses:          o.general.Completed().ExtensionClasses,
		Images:                    o.images,
	})
}

func (o *options) addHealthChecks(_ context.Context, mgr manager.Manager) error {
	return health.AddToManager(mgr, o.health.period, o.general.Completed().ExtensionClasses)
}

const identity = "gardener-extension-" + v1alpha3.ExtensionType

// leaderElectionID is the name of the Lease, as in gardener-extension-registry-cache. While one
// extension replaces the other, only one of them leads.
const leaderElectionID = "extension-registry-cache-leader-election"

// options are the flags of the command, composed of those of the extension library.
type options struct {
	general    *controllercmd.GeneralOptions
	rest       *controllercmd.RESTOptions
	limits     *requestLimits
	manager    *controllercmd.ManagerOptions
	controller *controllercmd.ControllerOptions
	reconciler *controllercmd.ReconcilerOptions
	health     *healthChecks
	heartbeat  *heartbeatcmd.Options
	webhook    *webhookcmd.AddToManagerOptions
	// controllers selects what runs: --controllers and --disable-controllers.
	controllers *controllercmd.SwitchOptions

	all controllercmd.OptionAggregator

	// images are loaded by run.
	images charts.Images
}

func newOptions() *options {
	o := &options{
		general: &controllercmd.GeneralOptions{},
		rest:    &controllercmd.RESTOptions{},
		limits:  &requestLimits{qps: 100, burst: 130},
		manager: &controllercmd.ManagerOptions{
			LeaderElection:          true,
			LeaderElectionID:        leaderElectionID,
			LeaderElectionNamespace: os.Getenv("LEADER_ELECTION_NAMESPACE"),
			WebhookServerPort:       10250,
			WebhookCertDir:          os.TempDir() + "/registry-cache-extension-certificates",
		},
		controller: &controllercmd.ControllerOptions{MaxConcurrentReconciles: 10},
		reconciler: &controllercmd.ReconcilerOptions{},
		health:     &healthChecks{period: 2 * time.Minute},
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
	o.controllers = controllercmd.NewSwitchOptions( // with the names of gardener-extension-registry-cache
		controllercmd.Switch("registry-cache-controller", o.addController),
		controllercmd.Switch(heartbeat.ControllerName, o.addHeartbeat),
		controllercmd.Switch("healthcheck", o.addHealthChecks),
	)
	o.all = controllercmd.NewOptionAggregator(
		o.general, o.rest, o.limits, o.manager, o.controller, o.reconciler, o.health, o.controllers,
		controllercmd.PrefixOption("heartbeat-", o.heartbeat),
		o.webhook,
	)
	return o
}

func (o *options) complete() error {
	if err := o.all.Complete(); err != nil {
		return err
	}
	return o.heartbeat.Validate()
}
