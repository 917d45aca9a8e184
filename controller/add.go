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

// ReconciliationTimeout bounds one Reconcile or Delete. The extension library's default of 3 minutes
// is less than cleaning the nodes may take.
const ReconciliationTimeout = 11 * time.Minute

// Options are the settings of the controller.
type Options struct {
	// Controller are options for the controller itself; ReconciliationTimeout is set when missing.
	Controller controller.Options
	// IgnoreOperationAnnotation lets the controller act on every change, not only on the ones that gardenlet announces.
	IgnoreOperationAnnotation bool
	// ExtensionClasses are the classes of Extensions that the controller cares for. None means class shoot.
	ExtensionClasses []extensionsv1alpha1.ExtensionClass
	// Images are deployed into the shoots.
	Images charts.Images
}

// AddToManager adds the controller for Extensions of type registry-cache to the manager, whose scheme must know the
// types of extensionscontroller.AddToScheme.
func AddToManager(ctx context.Context, mgr manager.Manager, options Options) error {
	// The actuator decides about deletions by what it reads, and what a cache returns may be older than its own last
	// write: a ManagedResource that was about to change was taken for healthy (gardener-extension-registry-cache#344). So it
	// never reads from a cache.
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

// ShootClient returns a client for the shoot whose control plane runs in the namespace of the seed.
type ShootClient func(ctx context.Context, namespace string) (client.Client, error)
