package health

import (
	"fmt"
	"time"

	"github.com/gardener/gardener/extensions/pkg/controller/healthcheck"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// conditions are the types of the conditions that the checks write.
var conditions = []string{v1alpha3.ConditionCachesHealthy, string(gardencorev1beta1.ShootSystemComponentsHealthy)}

// workers is the number of shoots that are checked at a time.
const workers = 5

// Options are the settings of the health checks.
type Options struct {
	// Period is the time between two checks of a shoot. With 0 there are no checks.
	Period           time.Duration
	ExtensionClasses []extensionsv1alpha1.ExtensionClass // default: shoot
}

// AddToManager adds the health checks of Extensions of type registry-cache. The manager's scheme
// must contain the types of extensionscontroller.AddToScheme.
func AddToManager(mgr manager.Manager, options Options) error {
	if options.Period == 0 {
		return nil
	}
	// These clients are not those of the actuator: the checks would evict its clients in turn.
	check := &actuator{seed: mgr.GetClient(), shoots: shootclient.New(mgr.GetAPIReader()).For}
	if err := register(mgr, options, check); err != nil {
		return fmt.Errorf("adding the health checks: %w", err)
	}
	return nil
}

// register registers the actuator with the extension library. healthcheck.DefaultRegistration would
// read each ManagedResource and create another client for the shoot on every check.
func register(mgr manager.Manager, options Options, check healthcheck.HealthCheckActuator) error {
	args := healthcheck.AddArgs{
		ControllerOptions:       controller.Options{MaxConcurrentReconciles: workers, RecoverPanic: new(true)},
		Predicates:              healthcheck.DefaultPredicates(),
		Type:                    v1alpha3.ExtensionType,
		ExtensionClasses:        options.ExtensionClasses,
		SyncPeriod:              metav1.Duration{Duration: options.Period},
		GetExtensionObjListFunc: func() client.ObjectList { return &extensionsv1alpha1.ExtensionList{} },
	}
	newExtension := func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Extension{} }
	kind := extensionsv1alpha1.SchemeGroupVersion.WithKind(extensionsv1alpha1.ExtensionResource)
	if err := args.RegisterExtension(newExtension, conditions, kind, nil); err != nil {
		return err
	}
	return healthcheck.Register(mgr, args, check)
}
