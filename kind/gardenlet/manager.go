package gardenlet

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/api/indexer"
	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/gardenlet/controller/controllerinstallation"
	"github.com/gardener/gardener/pkg/gardenlet/controller/seed/lease"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot"
	"github.com/gardener/gardener/pkg/healthz"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

const (
	// retryFor is how long a failing operation is retried before the Shoot is Failed. In a landscape,
	// it is 12 hours.
	retryFor = 5 * time.Minute
	// maxPause is the longest pause between two attempts. The first pause is firstPause.
	maxPause = 30 * time.Second
	// careInterval is the interval of the checks that write conditions.
	careInterval = 5 * time.Second
	leaseSeconds = 2 // the interval in which gardenlet renews its lease
	// stopTimeout bounds how long Manage waits for its controllers after ctx has ended. It is less
	// than the time until `testbed down` kills the process.
	stopTimeout = 3 * time.Second
)

// Manage is a permanent gardenlet for a real garden, which is in the seed cluster. It runs until
// ctx ends:
//   - gardenlet's own controllers for ControllerInstallations, which install extensions and report
//     their health, for NetworkPolicies, and for the seed's Lease and condition GardenletReady,
//   - gardenlet's own care controller with the health checks that apply to the testbed,
//   - a controller that runs the flows of g for the Shoot, and writes its status.
//
// Only one process may run it at a time. An operation that a killed process has left in progress is
// marked as aborted, and begins again.
func (g *Gardenlet) Manage(ctx context.Context) error {
	mgr, err := manager.New(g.Seed.RESTConfig(), manager.Options{
		Scheme: kubernetes.SeedScheme, Logger: g.Log, Metrics: server.Options{BindAddress: "0"}, MapperProvider: apiutil.NewDynamicRESTMapper,
		GracefulShutdownTimeout: ptr.To(stopTimeout),
	})
	if err != nil {
		return fmt.Errorf("create the manager: %w", err)
	}
	garden, err := cluster.New(g.Seed.RESTConfig(), func(o *cluster.Options) {
		o.Scheme, o.Logger, o.MapperProvider = kubernetes.GardenScheme, g.Log, apiutil.NewDynamicRESTMapper
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}}}
	})
	if err != nil {
		return fmt.Errorf("connect to the garden: %w", err)
	}
	for _, add := range []func(context.Context, client.FieldIndexer) error{
		indexer.AddControllerInstallationSeedRefName, indexer.AddControllerInstallationRegistrationRefName,
	} {
		if err := add(ctx, garden.GetFieldIndexer()); err != nil {
			return fmt.Errorf("index ControllerInstallations: %w", err)
		}
	}
	if err := mgr.Add(garden); err != nil {
		return fmt.Errorf("add the garden: %w", err)
	}
	if err := abortOperations(ctx, garden.GetAPIReader(), garden.GetClient()); err != nil {
		return err
	}
	g.Garden = garden.GetClient()
	if err := g.addControllers(ctx, mgr, garden); err != nil {
		return fmt.Errorf("add gardenlet's controllers: %w", err)
	}
	return mgr.Start(ctx)
}

func (g *Gardenlet) addControllers(ctx context.Context, mgr manager.Manager, garden cluster.Cluster) error {
	config := configuration()
	err := controllerinstallation.AddToManager(ctx, mgr, garden, mgr, g.Seed, config, gardener.Identity(), gardener.GardenIdentity,
		false, nil, gardener.SeedName, gardener.GardenNamespace)
	if err != nil {
		return err
	}
	err = lease.AddToManager(mgr, garden, g.Seed.RESTClient(), *config.Controllers.Seed, healthz.NewDefaultHealthz(), gardener.SeedName,
		clock.RealClock{}, ptr.To(gardencorev1beta1.GardenerSeedLeaseNamespace))
	if err != nil {
		return err
	}
	if err := gardener.AddNetworkPolicies(mgr); err != nil {
		return err
	}
	if err := g.addCare(mgr, garden, config); err != nil {
		return err
	}
	handler := (&shoot.Reconciler{Config: config, Clock: clock.RealClock{}}).EventHandler(g.Log)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPause, maxPause)
	return builder.ControllerManagedBy(mgr).Named("shoot").WithOptions(crcontroller.Options{RateLimiter: limiter}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &gardencorev1beta1.Shoot{}, handler, &predicate.GenerationChangedPredicate{})).
		Complete(&controller{gardenlet: g, garden: garden.GetClient(), events: garden.GetEventRecorder("shoot-controller"), config: *config.Controllers.Shoot})
}

// configuration returns gardenlet's configuration: its defaults, with shorter periods.
func configuration() gardenletconfigv1alpha1.GardenletConfiguration {
	config := gardenletconfigv1alpha1.GardenletConfiguration{SeedConfig: &gardenletconfigv1alpha1.SeedConfig{}}
	config.SeedConfig.Name = gardener.SeedName
	gardenletconfigv1alpha1.SetObjectDefaults_GardenletConfiguration(&config)
	config.Controllers.Seed.LeaseResyncSeconds = ptr.To[int32](leaseSeconds)
	config.Controllers.Shoot.RetryDuration = &metav1.Duration{Duration: retryFor}
	for _, period := range []**metav1.Duration{
		&config.Controllers.ShootCare.SyncPeriod, &config.Controllers.ControllerInstallationCare.SyncPeriod,
	} {
		*period = &metav1.Duration{Duration: careInterval}
	}
	return config
}

// abortOperations marks operations as aborted that a killed process has left in progress, as
// gardenlet does when it starts.
func abortOperations(ctx context.Context, reader client.Reader, garden client.Client) error {
	shoots := &gardencorev1beta1.ShootList{}
	if err := reader.List(ctx, shoots); err != nil {
		return fmt.Errorf("list the shoots of the garden: %w", err)
	}
	for _, shoot := range shoots.Items {
		if last := shoot.Status.LastOperation; last == nil || last.State != gardencorev1beta1.LastOperationStateProcessing {
			continue
		}
		patch := client.MergeFrom(shoot.DeepCopy())
		shoot.Status.LastOperation.State = gardencorev1beta1.LastOperationStateAborted
		if err := garden.Status().Patch(ctx, &shoot, patch); err != nil {
			return fmt.Errorf("abort the operation of shoot %s: %w", client.ObjectKeyFromObject(&shoot), err)
		}
	}
	return nil
}
