package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// Reconcile deploys what the providerConfig configures. To remove a cache, it cleans the nodes,
// removes the cache from the status, and then deletes its objects. In this order no ready node
// keeps the mirror of a removed cache. An invalid providerConfig or reference changes nothing, and
// is not an error in a hibernated Shoot. A cache waits until its upstream's earlier one is gone.
func (a *Actuator) Reconcile(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.run(ctx, ex, "reconcile", func(ctx context.Context) error { return a.reconcile(ctx, log, ex) })
}

func (a *Actuator) reconcile(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	cluster, err := a.cluster(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	t, err := a.read(ctx, ex, cluster)
	mistake := isConfigurationProblem(err) || errors.Is(err, errRecord)
	if extensionscontroller.IsHibernationEnabled(cluster) && (mistake || retry.IsWaiting(err)) {
		log.Info("The caches stay as they are until the Shoot wakes up", "reason", err.Error())
		if !mistake {
			return nil
		}
		return a.reportMistake(ctx, ex, err)
	}
	if err != nil {
		return err
	}
	if err := a.reportMistake(ctx, ex, nil); err != nil {
		return err
	}
	if t.hasNone() && len(t.before.upstreams())+len(t.leaving) == 0 {
		return a.removeUnused(ctx, t)
	}
	if err := a.cleanRemoved(ctx, log, t); err != nil {
		return err
	}
	step := a.deploy
	if t.before.takingOver && len(t.released) == 0 {
		step, t.delayed = a.takeOver, nil
	}
	if err := step(ctx, log, t); err != nil {
		return err
	}
	if t.cleaned {
		if err := a.remove(ctx, ex.Namespace, false, cleanerName); err != nil {
			return err
		}
	}
	return a.addDelayed(ctx, log, t)
}

// removeUnused removes what is deployed for no cache, usually nothing, and writes a providerStatus
// without caches: without one, the webhook would reject OperatingSystemConfigs.
// Nodes are not cleaned if the status was lost before: the unit removes its files when it goes.
func (a *Actuator) removeUnused(ctx context.Context, t *target) error {
	if err := a.remove(ctx, t.ex.Namespace, sleeps(t.cluster), cleanerName, monitoringName, cachesName, servicesName); err != nil {
		return err
	}
	r := t.before
	r.status = newStatus(nil, nil)
	return a.write(ctx, t.ex, r)
}

// addDelayed reconciles again when the earlier caches of all delayed upstreams are gone. It does
// not wait long: a policy of the shoot may keep them, which must not fail the Shoot. A later
// reconciliation then adds the caches. A hibernated shoot deletes earlier caches when it wakes up.
func (a *Actuator) addDelayed(ctx context.Context, log logr.Logger, t *target) error {
	if len(t.delayed) == 0 || t.hibernationEnabled() {
		return nil
	}
	i := slices.IndexFunc(t.delayed, func(upstream string) bool { _, stays := t.leaving.Of(upstream); return stays })
	if i < 0 {
		return a.reconcile(ctx, log, t.ex)
	}
	mr, err := a.managedResource(ctx, t.ex.Namespace, cachesName)
	if err != nil {
		return err
	}
	if applied := v1beta1helper.GetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); applied == nil ||
		a.clock.Since(written(mr)) < delayedLimit || a.clock.Since(applied.LastTransitionTime.Time) < delayedLimit ||
		applied.Status == gardencorev1beta1.ConditionTrue && mr.Status.ObservedGeneration != mr.Generation { // the shoot is waking up
		return retry.Waiting(fmt.Errorf("the earlier cache of %s is still being deleted in the shoot", t.delayed[i]))
	}
	a.tell(t.ex, corev1.EventTypeWarning, "CacheDelayed", "cache of %s: its earlier cache is still being deleted: %s", t.delayed[i], notApplied(mr))
	return nil
}

// reportMistake writes to the condition ConfigurationValid why the caches of a hibernated Shoot do
// not change: an error would prevent hibernation. Without a mistake, it resets the condition.
func (a *Actuator) reportMistake(ctx context.Context, ex *extensionsv1alpha1.Extension, mistake error) error {
	if mistake == nil && v1beta1helper.GetCondition(ex.Status.Conditions, v1alpha3.ConditionConfigurationValid) == nil {
		return nil
	}
	status, reason, message := gardencorev1beta1.ConditionTrue, "ConfigurationValid", "The configuration is valid."
	if mistake != nil {
		status, reason, message = gardencorev1beta1.ConditionFalse, "ConfigurationProblem", "When the Shoot wakes up: "+mistake.Error()
	}
	before := ex.DeepCopy()
	current := v1beta1helper.GetOrInitConditionWithClock(a.clock, ex.Status.Conditions, v1alpha3.ConditionConfigurationValid)
	updated := v1beta1helper.UpdatedConditionWithClock(a.clock, current, status, reason, message)
	ex.Status.Conditions = v1beta1helper.MergeConditions(ex.Status.Conditions, updated)
	return a.patchStatus(ctx, ex, before)
}

// cleanRemoved removes the configuration of removed upstreams from the nodes, and then from the
// status. After that, the webhook no longer gives this configuration to nodes, and a retry does not
// clean again. After the caller has deployed the caches, it or a retry must wait until the cleaner
// is deleted.
func (a *Actuator) cleanRemoved(ctx context.Context, log logr.Logger, t *target) error {
	removed := t.before.removed(t.config)
	if len(removed) == 0 && t.isNew {
		return nil // nothing was ever deployed
	}
	var conditions []gardencorev1beta1.Condition
	if len(removed) > 0 && nodesToClean(t.cluster) {
		log.Info("Removing the configuration of removed upstreams from the nodes", "upstreams", removed)
		if err := a.countCleanUp(ctx, t); err != nil {
			return err
		}
		result, err := a.clean(ctx, log, t.ex, cleaner.Task{Upstreams: removed, Endpoints: t.before.endpoints(removed...)})
		if err != nil {
			return err
		}
		t.cleaned = true
		conditions = append(conditions, result)
	} else if err := a.remove(ctx, t.ex.Namespace, sleeps(t.cluster), cleanerName); err != nil {
		return err
	}
	return a.write(ctx, t.ex, t.before.retained(t.config), conditions...)
}

// countCleanUp counts a clean-up in the status before it starts. The webhook writes the number into
// the unit. Without this number, a reverted removal would not change the OperatingSystemConfig,
// gardener-node-agent would do nothing, and cleaned nodes would have no mirror. A clean-up that is
// resumed counts once.
func (a *Actuator) countCleanUp(ctx context.Context, t *target) error {
	mr, err := a.managedResource(ctx, t.ex.Namespace, cleanerName)
	isResumed := err == nil && mr.DeletionTimestamp == nil && t.before.cleanUps > 0
	if isResumed || client.IgnoreNotFound(err) != nil {
		return err
	}
	t.before.cleanUps++
	return a.write(ctx, t.ex, t.before)
}

// deploy deploys the caches and their monitoring, and writes the endpoints to the status.
func (a *Actuator) deploy(ctx context.Context, log logr.Logger, t *target) error {
	endpoints, ca, err := a.deployObjects(ctx, log, t)
	if t.isNew && apierrors.IsAlreadyExists(err) {
		// The Extension has lost its status, so read what runs in the shoot.
		t.isNew = false
		if err := a.identify(ctx, t); err != nil {
			return err
		}
		return a.deploy(ctx, log, t)
	}
	if err != nil && (!t.hibernationEnabled() || !retry.IsWaiting(err)) {
		return err
	}
	if t.hibernationEnabled() { // an error of a ManagedResource that is being deleted is ignored until the shoot wakes up
		log.Info("Not waiting for endpoints, because the shoot is hibernated")
		r := t.record(t.before.retained(t.config).status)
		r.takenOverAt = t.before.takenOverAt
		return a.write(ctx, t.ex, r)
	}
	if !t.isNew { // caches that were just created have no volumes yet
		if err := a.adaptVolumes(ctx, log, t); err != nil {
			return err
		}
	}
	if t.missing != nil {
		return t.missing
	}
	if err := a.awaitRollout(ctx, log, t, ca); err != nil {
		return err
	}
	if t.before.takenOverAt != "" { // after a migration, no ManagedResource lists this NetworkPolicy
		err := deleteAll(ctx, t.shoot, nil, &networkingv1.NetworkPolicy{ObjectMeta: originalPolicy})
		if err := unlessRefused(log, err, "delete NetworkPolicy "+originalPolicy.Name); err != nil {
			return err
		}
	}
	if ca != nil {
		err = ca.Prune(ctx)
	} else if t.before.hadTLS() || t.before.takenOverAt != "" {
		err = certificate.Remove(ctx, log, a.clock, a.client, t.ex.Namespace)
	}
	if err != nil {
		return err
	}
	return a.write(ctx, t.ex, t.record(newStatus(endpoints, ca)))
}

// announce records new caches before they are deployed. After an interruption, the next attempt
// knows the running caches, even if the config has changed.
func (a *Actuator) announce(ctx context.Context, t *target) error {
	r := t.before.retained(t.config)
	caches := slices.Clone(r.configured())
	for i, c := range t.config.Caches {
		if !slices.Contains(r.upstreams(), c.Upstream) {
			caches = append(caches, c)
			r.running = append(r.running, t.identities[i])
		}
	}
	if len(caches) > len(r.configured()) {
		r.applied = &v1alpha3.RegistryConfig{Caches: caches}
	}
	return a.write(ctx, t.ex, r)
}

// deployObjects writes all ManagedResources. It writes the Services first, because certificates
// need their addresses. It writes the others even if Services are missing, unless a certificate
// needs an address that was never known: a problem of one cache must not block changes to the
// others.
func (a *Actuator) deployObjects(ctx context.Context, log logr.Logger, t *target) (endpoints []v1alpha3.RegistryCacheStatus, ca *certificate.CA, err error) {
	if err = refuseForeignServices(ctx, t); err != nil {
		return nil, nil, err
	}
	if err = a.announce(ctx, t); err != nil {
		return nil, nil, err
	}
	if err = a.deployCaches(ctx, t, servicesName, nil, cache.Services); err != nil {
		return nil, nil, err
	}
	if !t.hibernationEnabled() {
		endpoints, t.missing = a.awaitEndpoints(ctx, t)
		if t.missing != nil && (!retry.IsWaiting(t.missing) && !errors.Is(t.missing, errNotApplicable) || t.lacksAddress()) {
			return nil, nil, t.missing
		}
	}
	if ca, err = a.certify(ctx, log, t); err != nil {
		return nil, nil, err
	}
	others := func(c v1alpha3.RegistryCache, id v1alpha3.Identity, shoot cache.Shoot) ([]client.Object, error) {
		return cache.Objects(c, id, shoot, t.secrets[c.Upstream])
	}
	if err = a.deployCaches(ctx, t, cachesName, t.released, others); err != nil {
		return nil, nil, err
	}
	return endpoints, ca, a.deployMonitoring(ctx, t)
}
