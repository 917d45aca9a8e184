package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// ReconciliationTimeout bounds one Reconcile or Delete. The extension library's default of 3
// minutes is less than cleaning the nodes may take.
const ReconciliationTimeout = 11 * time.Minute

// Options are the settings of the controller.
type Options struct {
	// Controller are the options of the controller itself. ReconciliationTimeout is the default of its
	// ReconciliationTimeout.
	Controller controller.Options
	// IgnoreOperationAnnotation makes the controller reconcile every change, not only those that
	// gardenlet annotates.
	IgnoreOperationAnnotation bool
	// ExtensionClasses are the classes of Extensions to reconcile. Empty means class shoot.
	ExtensionClasses []extensionsv1alpha1.ExtensionClass
	// Images are the images to deploy to the shoots.
	Images charts.Images
}

// AddToManager adds the controller for Extensions of type registry-cache to the manager. The
// manager's scheme must contain the types of extensionscontroller.AddToScheme.
func AddToManager(ctx context.Context, mgr manager.Manager, options Options) error {
	// The actuator never reads from a cache. It decides about deletions by what it reads, and a cache
	// may be older than the actuator's own last write: a ManagedResource that was about to change was
	// considered healthy (gardener-extension-registry-cache#344).
	live, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("creating the client of the actuator: %w", err)
	}
	if options.Controller.ReconciliationTimeout == 0 {
		options.Controller.ReconciliationTimeout = ReconciliationTimeout
	}
	return extension.Add(mgr, extension.AddArgs{
		Actuator:                  newBulkhead(NewActuator(live, shootclient.New(live).For, options.Images), options.Controller.MaxConcurrentReconciles),
		Name:                      v1alpha3.ExtensionType,
		FinalizerSuffix:           v1alpha3.ExtensionType,
		ControllerOptions:         options.Controller,
		Predicates:                extension.DefaultPredicates(ctx, mgr, options.IgnoreOperationAnnotation),
		Type:                      v1alpha3.ExtensionType,
		IgnoreOperationAnnotation: options.IgnoreOperationAnnotation,
		ExtensionClasses:          options.ExtensionClasses,
	})
}

// ShootClient returns a client for the shoot whose control plane is in the namespace of the seed.
type ShootClient func(ctx context.Context, namespace string) (client.Client, error)
