package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/gardener/extensions/pkg/controller/healthcheck"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// conditions are the types of the conditions that the checks write.
var conditions = []string{v1alpha3.ConditionCachesHealthy, string(gardencorev1beta1.ShootSystemComponentsHealthy)}

// never is the time until the library looks again for conditions that it has removed.
const never = 10 * 365 * 24 * time.Hour

// workers is the number of shoots that are checked at a time.
const workers = 5

// Options are the settings of the health checks.
type Options struct {
	// Period is the time between two checks of a shoot. With 0 there are no checks, and the conditions
	// of earlier ones are removed.
	Period           time.Duration
	ExtensionClasses []extensionsv1alpha1.ExtensionClass // default: shoot
}

// AddToManager adds the health checks of Extensions of type registry-cache. The manager's scheme
// must contain the types of extensionscontroller.AddToScheme.
func AddToManager(mgr manager.Manager, options Options) error {
	clients := shootclient.New(mgr.GetAPIReader(), shootclient.ForAll)
	check := newActuator(mgr.GetClient(), clients.For)
	check.forget = clients.Forget
	if err := register(mgr, options, check); err != nil {
		return fmt.Errorf("adding the health checks: %w", err)
	}
	return nil
}

// register registers the actuator with the extension library. healthcheck.DefaultRegistration would
// read each ManagedResource and create another client for the shoot on every check.
func register(mgr manager.Manager, options Options, check *actuator) error {
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
	if options.Period == 0 {
		args.Predicates = append(args.Predicates, predicate.NewPredicateFuncs(hasConditions))
		args.SyncPeriod.Duration = never
		removed := sets.New[gardencorev1beta1.ConditionType](v1alpha3.ConditionCachesHealthy, gardencorev1beta1.ShootSystemComponentsHealthy)
		if err := args.RegisterExtension(newExtension, nil, kind, removed); err != nil {
			return err
		}
		return healthcheck.Register(mgr, args, noChecks{})
	}
	if err := args.RegisterExtension(newExtension, conditions, kind, nil); err != nil {
		return err
	}
	return healthcheck.Register(forgetfulManager{mgr, check}, args, check)
}

func hasConditions(object client.Object) bool {
	ex, ok := object.(*extensionsv1alpha1.Extension)
	return ok && slices.ContainsFunc(ex.Status.Conditions, func(c gardencorev1beta1.Condition) bool {
		return slices.Contains(conditions, string(c.Type))
	})
}

// noChecks lets the library only remove conditions.
type noChecks struct{}

func (noChecks) ExecuteHealthCheckFunctions(context.Context, logr.Logger, types.NamespacedName) (*[]healthcheck.Result, error) {
	return &[]healthcheck.Result{}, nil
}

// forgetfulManager is a manager whose client says that an Extension that is gone is being deleted.
// The library would look for it in every period, for ever (v1.147.1).
type forgetfulManager struct {
	manager.Manager
	check *actuator
}

func (m forgetfulManager) GetClient() client.Client {
	return forgetfulClient{m.Manager.GetClient(), m.check}
}

type forgetfulClient struct {
	client.Client
	check *actuator
}

func (c forgetfulClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	if ex, ok := object.(*extensionsv1alpha1.Extension); ok && apierrors.IsNotFound(err) {
		c.check.pauses.DeleteEntry(key.Namespace)
		c.check.forget(key.Namespace)
		ex.DeletionTimestamp = new(metav1.Now())
		return nil
	}
	return err
}
