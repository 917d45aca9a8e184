// Package health reports problems of single caches in conditions of the Extension. They do not fail
// a reconciliation, because nodes pull from the upstream meanwhile.
//
// The condition CachesHealthy is for operators of the seed. gardenlet copies only conditions of a
// few types to the Shoot, so the same text is in SystemComponentsHealthy for the Shoot's owner.
// gardenlet itself adds problems of ManagedResources to it.
//
// The package reads pods and claims in the shoot, and changes nothing there.
package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/gardener/extensions/pkg/controller/healthcheck"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// AddToManager adds the health checks of Extensions of type registry-cache and of the classes, by
// default shoot. The period is the time between two checks of a shoot. With 0 there are no checks,
// and the conditions of earlier ones are removed. The manager's scheme must contain the types of
// extensionscontroller.AddToScheme.
func AddToManager(mgr manager.Manager, period time.Duration, classes []extensionsv1alpha1.ExtensionClass) error {
	clients := shootclient.New(mgr.GetAPIReader(), shootclient.ForAll)
	check := newActuator(mgr.GetClient(), clients.For)
	check.forget = clients.Forget
	if err := register(mgr, period, classes, check); err != nil {
		return fmt.Errorf("add the health checks: %w", err)
	}
	return nil
}

// register registers the actuator with the extension library. healthcheck.DefaultRegistration would
// read each ManagedResource and create another client for the shoot on every check.
func register(mgr manager.Manager, period time.Duration, classes []extensionsv1alpha1.ExtensionClass, check *actuator) error {
	args := healthcheck.AddArgs{
		ControllerOptions:       controller.Options{MaxConcurrentReconciles: workers, RecoverPanic: new(true)},
		Predicates:              healthcheck.DefaultPredicates(),
		Type:                    v1alpha3.ExtensionType,
		ExtensionClasses:        classes,
		SyncPeriod:              metav1.Duration{Duration: period},
		GetExtensionObjListFunc: func() client.ObjectList { return &extensionsv1alpha1.ExtensionList{} },
	}
	write, remove := conditions, sets.Set[gardencorev1beta1.ConditionType]{}
	if period == 0 {
		write, remove = nil, sets.New[gardencorev1beta1.ConditionType](v1alpha3.ConditionCachesHealthy, gardencorev1beta1.ShootSystemComponentsHealthy)
		check.off, args.SyncPeriod.Duration = true, never
		args.Predicates = append(args.Predicates, predicate.NewPredicateFuncs(func(object client.Object) bool {
			ex, ok := object.(*extensionsv1alpha1.Extension)
			return ok && slices.ContainsFunc(ex.Status.Conditions, func(c gardencorev1beta1.Condition) bool { return remove.Has(c.Type) })
		}))
	}
	newExtension := func() extensionsv1alpha1.Object { return &extensionsv1alpha1.Extension{} }
	kind := extensionsv1alpha1.SchemeGroupVersion.WithKind(extensionsv1alpha1.ExtensionResource)
	if err := args.RegisterExtension(newExtension, write, kind, remove); err != nil {
		return err
	}
	return healthcheck.Register(forgetfulManager{mgr, forgetfulClient{mgr.GetClient(), check}}, args, check)
}

// forgetfulManager is a manager whose client returns a missing Extension as one that is being
// deleted. Otherwise the library would look for it in every period, forever (v1.147.1).
type forgetfulManager struct {
	manager.Manager
	client forgetfulClient
}

func (m forgetfulManager) GetClient() client.Client { return m.client }

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
