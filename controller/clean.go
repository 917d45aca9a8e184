package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// clean runs the cleaner until all nodes are clean or skipped, and requests its deletion. The
// caller must wait for the deletion. clean returns the skipped nodes with reasons: nodes that are
// not ready and, after a longer time, ready nodes that the cleaner cannot clean. So one broken node
// cannot block the Shoot.
func (a *Actuator) clean(ctx context.Context, log logr.Logger, namespace string, task cleaner.Task) ([]string, error) {
	set, err := cleaner.DaemonSet(task, a.images.RegistryCleaner)
	if err != nil {
		return nil, err
	}
	if err := a.awaitEarlierCleaner(ctx, namespace); err != nil {
		return nil, err
	}
	started := time.Now()
	err = apply(ctx, a.client, namespace, cleanerName, shootEncoder, []client.Object{set}, func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForShoot(c, namespace, cleanerName, origin, false)
	})
	if err != nil {
		return nil, err
	}
	skipped, err := a.awaitCleaned(ctx, namespace)
	if err != nil {
		return nil, err
	}
	cleaningSeconds.Observe(time.Since(started).Seconds())
	nodesSkipped.Add(float64(len(skipped)))
	if len(skipped) > 0 {
		log.Info("Skipped nodes that the cleaner cannot run on; they must notice that a removed cache does not answer", "nodes", skipped)
	}
	_, err = a.requestDeletion(ctx, namespace, cleanerName)
	return skipped, err
}

// awaitEarlierCleaner waits until a cleaner that is being deleted is gone: it would not run a new
// task.
func (a *Actuator) awaitEarlierCleaner(ctx context.Context, namespace string) error {
	mr, err := a.managedResource(ctx, namespace, cleanerName)
	if err != nil || mr.DeletionTimestamp == nil {
		return client.IgnoreNotFound(err)
	}
	return a.remove(ctx, namespace, cleanerName)
}

// awaitCleaned waits until all nodes are clean or may be skipped, and returns the skipped ones. The
// error names the nodes that are not clean.
func (a *Actuator) awaitCleaned(ctx context.Context, namespace string) ([]string, error) {
	shoot, err := a.shootClient(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var skipped []string
	var unfinished error
	var applied time.Time // the cleaner of this attempt
	started := time.Now()
	check := func(patient bool) bool {
		var rollout cleaner.Rollout
		if rollout, unfinished = a.rollout(ctx, shoot, namespace, patient); unfinished != nil {
			return false
		}
		if applied.IsZero() {
			applied = time.Now()
		}
		skipped, unfinished = rollout.Unclean(), rollout.Err()
		return unfinished == nil || a.maySkip(rollout, time.Since(started), time.Since(applied))
	}
	// The requests use ctx: with the context of the poll, its timeout would hide the unclean nodes.
	limited, cancel := context.WithTimeout(ctx, a.waits.cleaned)
	defer cancel()
	fullCheckAt := a.waits.reported
	err = backoff(a.waits.interval).Until(limited, true, true, func(context.Context) (bool, error) {
		elapsed := time.Since(started)
		patient := elapsed < fullCheckAt
		if !patient { // check(false) lists all nodes and pods, which is too much for each poll
			fullCheckAt = elapsed + min(elapsed, 2*a.waits.reported)
		}
		done := check(patient)
		if shootclient.NoAnswer(unfinished) {
			return false, unfinished
		}
		return done, nil
	})
	if shootclient.NoAnswer(unfinished) {
		return nil, unfinished
	}
	if err != nil && (ctx.Err() != nil || !check(false)) {
		return nil, fmt.Errorf("the nodes were not cleaned within %s; look at DaemonSet %s in the shoot: %w",
			a.waits.cleaned, v1alpha3.CleanerDaemonSet, errors.Join(unfinished, err))
	}
	return skipped, nil
}

// maySkip returns whether the clean-up may end although some nodes are not clean. It may skip nodes
// that have not been ready for a while. If the cleaner has run long enough, it may also skip ready
// nodes.
func (a *Actuator) maySkip(rollout cleaner.Rollout, elapsed, applied time.Duration) bool {
	notReady := elapsed >= a.waits.notReady || !rollout.NotReadySince.IsZero() && a.clock.Since(rollout.NotReadySince) >= a.waits.notReady
	stuck := applied >= a.waits.stuck
	return (len(rollout.NotReady) == 0 || notReady) && (len(rollout.Unfinished) == 0 || stuck)
}

// backoff slows down a long poll: the interval grows to at most five times its initial value.
func backoff(interval time.Duration) wait.DelayFunc {
	return wait.Backoff{Duration: interval, Factor: 1.2, Steps: 100, Cap: 5 * interval}.DelayFunc()
}

// smallShoot is the number of nodes up to which every poll reads the nodes and pods. The
// DaemonSet's own status is slower: it reports a pod as ready some seconds after its node is clean.
const smallShoot = 20

// rollout returns the state of the cleaner's rollout. If patient is set and the shoot is not small,
// rollout reads the nodes and pods, perhaps thousands, only after the DaemonSet reports that it is
// done. Before that, it returns the progress as an error.
func (a *Actuator) rollout(
	ctx context.Context, shoot client.Client, namespace string, patient bool,
) (none cleaner.Rollout, err error) {
	mr, err := a.managedResource(ctx, namespace, cleanerName)
	if err != nil {
		return none, err
	}
	// A new task changes the ManagedResource's generation, because its Secret's name has a hash.
	if err := health.CheckManagedResourceApplied(mr); err != nil {
		return none, err
	}
	set := &appsv1.DaemonSet{}
	if err := shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.CleanerDaemonSet}, set); err != nil {
		return none, fmt.Errorf("reading DaemonSet %s in the shoot: %w", v1alpha3.CleanerDaemonSet, err)
	}
	isSmall := set.Status.ObservedGeneration >= set.Generation && set.Status.DesiredNumberScheduled <= smallShoot
	if err := cleaner.Reported(set); patient && !isSmall && err != nil {
		return none, err
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes); err != nil {
		return none, fmt.Errorf("listing the nodes of the shoot: %w", err)
	}
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels(cleaner.Labels())); err != nil {
		return none, fmt.Errorf("listing the pods of DaemonSet %s in the shoot: %w", v1alpha3.CleanerDaemonSet, err)
	}
	return cleaner.RolloutOf(set, pods.Items, nodes.Items), nil
}

// nodesCleaned returns the condition after a clean-up. The skipped nodes are given with reasons.
func nodesCleaned(clock clock.Clock, ex *extensionsv1alpha1.Extension, skipped []string) gardencorev1beta1.Condition {
	condition := v1beta1helper.GetOrInitConditionWithClock(clock, ex.Status.Conditions, v1alpha3.ConditionNodesCleaned)
	if len(skipped) == 0 {
		return v1beta1helper.UpdatedConditionWithClock(clock, condition, gardencorev1beta1.ConditionTrue, "AllNodesCleaned",
			"The last clean-up of removed caches reached every node.")
	}
	return v1beta1helper.UpdatedConditionWithClock(clock, condition, gardencorev1beta1.ConditionFalse, "NodesSkipped",
		fmt.Sprintf("The last clean-up of removed caches skipped nodes: %s. They pull directly as soon as they notice that the "+
			"removed cache does not answer.", cleaner.Named(skipped)))
}
