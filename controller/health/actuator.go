// Package health reports problems of single caches in conditions of the Extension. They do not fail
// a reconciliation, because nodes pull from the upstream instead.
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
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/go-logr/logr"
	"github.com/hashicorp/golang-lru/v2/expirable"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// conditions are the types of the conditions that the checks write. The Shoot gets only the second.
var conditions = []string{v1alpha3.ConditionCachesHealthy, string(gardencorev1beta1.ShootSystemComponentsHealthy)}

const (
	// workers is the number of shoots that are checked at a time.
	workers = 5
	// timeout limits the check of one shoot, so that shoots that hang do not delay others much.
	timeout = 5 * time.Second
	// maxRefusals bounds the number of remembered reasons why claims cannot grow.
	maxRefusals = 1000
	// never is the time until the library looks again for conditions that it has removed.
	never = 10 * 365 * 24 * time.Hour
)

// actuator checks the caches of one shoot at a time. The library writes the conditions, even those
// of hibernated shoots.
type actuator struct {
	seed   client.Reader
	shoots func(ctx context.Context, namespace string) (client.Client, error)
	forget func(namespace string) // is called for Extensions that are gone
	pauses *flowcontrol.Backoff   // for shoots that do not answer, by namespace
	// refusals are the last errors of attempts to grow claims, by UID, see lastRefusal.
	refusals *expirable.LRU[types.UID, error]
	off      bool // the library only removes the conditions
}

func newActuator(seed client.Reader, shoots func(context.Context, string) (client.Client, error)) *actuator {
	refusals := expirable.NewLRU[types.UID, error](maxRefusals, nil, 0)
	return &actuator{seed: seed, shoots: shoots, forget: func(string) {}, pauses: retry.NewPauses(), refusals: refusals}
}

// ExecuteHealthCheckFunctions implements healthcheck.HealthCheckActuator. It returns no results, so
// the conditions do not change, if nothing is deployed, the shoot is being deleted or wakes up, or
// has not answered lately.
func (a *actuator) ExecuteHealthCheckFunctions(ctx context.Context, _ logr.Logger, key types.NamespacedName) (*[]healthcheck.Result, error) {
	if a.off {
		return &[]healthcheck.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	state, err := a.deployed(ctx, key)
	if err != nil || state == nil || a.pauses.IsInBackOffSinceUpdate(key.Namespace, time.Now()) {
		return &[]healthcheck.Result{}, err
	}
	if len(state.Caches) == 0 { // all were removed
		return resultsOf(nil), nil
	}
	problems, err := a.check(ctx, key.Namespace, state.Caches, v1alpha3.Identify(state.Caches, state.Running))
	if shootclient.IsNoAnswer(err) {
		a.pauses.Next(key.Namespace, time.Now())
	} else {
		a.pauses.DeleteEntry(key.Namespace)
	}
	if err != nil {
		return unknown(err), nil
	}
	return resultsOf(problems), nil
}

// deployed returns the state with the caches that were last deployed, nil if they are not to be
// checked.
func (a *actuator) deployed(ctx context.Context, key types.NamespacedName) (*v1alpha3.State, error) {
	ex := &extensionsv1alpha1.Extension{}
	if err := a.seed.Get(ctx, key, ex); err != nil {
		return nil, fmt.Errorf("read Extension %s: %w", key, err)
	}
	state, err := v1alpha3.DecodeState(ex.Status.State)
	if err != nil || state.RegistryConfig == nil {
		return nil, err
	}
	shoot, err := extensions.GetShoot(ctx, a.seed, key.Namespace)
	if err != nil {
		return nil, fmt.Errorf("read the Shoot of Cluster %s: %w", key.Namespace, err)
	}
	if shoot == nil || shoot.DeletionTimestamp != nil || shoot.Status.IsHibernated {
		return nil, nil
	}
	return &state, nil
}

// resultsOf returns the same result for both conditions: CachesHealthy never reaches the Shoot. The
// results contain no error code: gardenlet would not retry after a mistake of the owner.
func resultsOf(problems []problem) *[]healthcheck.Result {
	result := healthcheck.Result{Status: gardencorev1beta1.ConditionTrue, SuccessfulChecks: 1}
	if len(problems) > 0 {
		result = healthcheck.Result{Status: gardencorev1beta1.ConditionFalse, Detail: new(describe(problems))}
		if slices.ContainsFunc(problems, func(p problem) bool { return p.lasting }) {
			result.UnsuccessfulChecks = 1
		} else {
			result.ProgressingChecks, result.ProgressingThreshold = 1, new(progressingThreshold)
		}
	}
	var results []healthcheck.Result
	for _, condition := range conditions {
		result.HealthConditionType = condition
		results = append(results, result)
	}
	return &results
}

// unknown returns the result for a shoot that cannot be read. SystemComponentsHealthy does not
// change: gardenlet itself reports an API server that does not answer.
func unknown(err error) *[]healthcheck.Result {
	return &[]healthcheck.Result{{
		HealthConditionType: v1alpha3.ConditionCachesHealthy, Status: gardencorev1beta1.ConditionFalse, FailedChecks: 1, Detail: new(err.Error()),
	}}
}

// AddToManager adds the health checks of Extensions of type registry-cache and of the classes
// (default: shoot). The period is the time between two checks of a shoot. With 0 there are no
// checks, and the conditions of earlier ones are removed. The manager's scheme must contain the
// types of extensionscontroller.AddToScheme.
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
// deleted. Otherwise the library would look for it in every period, forever (v1.150.0).
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
