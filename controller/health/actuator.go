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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

const (
	// timeout limits the check of one shoot, so that shoots that hang do not delay others much.
	timeout = 5 * time.Second
	// maxRefusals limits the memory for reasons why claims cannot grow.
	maxRefusals = 1000
	// progressingThreshold is how long problems that may pass are reported as Progressing. A cache may
	// need minutes to start: its volume is provisioned, its image pulled, its store opened.
	progressingThreshold = 5 * time.Minute
)

// actuator checks the caches of one shoot at a time. The library writes the conditions, also those
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
// the conditions stay as they are, if nothing is deployed, the shoot is being deleted or wakes up,
// or has not answered lately.
func (a *actuator) ExecuteHealthCheckFunctions(ctx context.Context, _ logr.Logger, key types.NamespacedName) (*[]healthcheck.Result, error) {
	if a.off {
		return &[]healthcheck.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	caches, running, err := a.caches(ctx, key)
	if err != nil || len(caches) == 0 || a.pauses.IsInBackOffSinceUpdate(key.Namespace, time.Now()) {
		return &[]healthcheck.Result{}, err
	}
	problems, err := a.check(ctx, key.Namespace, caches, running)
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

// caches returns the caches that were last deployed and their identities, or none if they are not
// to be checked.
func (a *actuator) caches(ctx context.Context, key types.NamespacedName) ([]v1alpha3.RegistryCache, v1alpha3.Identities, error) {
	ex := &extensionsv1alpha1.Extension{}
	if err := a.seed.Get(ctx, key, ex); err != nil {
		return nil, nil, fmt.Errorf("read Extension %s: %w", key, err)
	}
	state, err := v1alpha3.DecodeState(ex.Status.State)
	if err != nil || state.RegistryConfig == nil {
		return nil, nil, err
	}
	shoot, err := extensions.GetShoot(ctx, a.seed, key.Namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("read the Shoot of Cluster %s: %w", key.Namespace, err)
	}
	if shoot == nil || shoot.DeletionTimestamp != nil || shoot.Status.IsHibernated {
		return nil, nil, nil
	}
	return state.Caches, v1alpha3.Identify(state.Caches, state.Running), nil
}

// resultsOf returns the results for both conditions. They contain no error code: gardenlet would
// not retry after a mistake of the owner.
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

// unknown returns the result for a shoot that cannot be read. SystemComponentsHealthy stays as it
// is: gardenlet itself reports an API server that does not answer.
func unknown(err error) *[]healthcheck.Result {
	return &[]healthcheck.Result{{
		HealthConditionType: v1alpha3.ConditionCachesHealthy, Status: gardencorev1beta1.ConditionFalse, FailedChecks: 1, Detail: new(err.Error()),
	}}
}
