package controller

import (
	"context"
	"fmt"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// clean deploys the DaemonSet of package controller/cleaner, whose pods run nodeconfig/cleaner. It
// waits until all nodes are clean or skipped, and requests the deletion of the DaemonSet. The
// caller must wait for the deletion. clean returns the condition NodesCleaned with the skipped
// nodes (see maySkip), so that one broken node cannot block the Shoot. The error names the nodes
// that are not clean.
func (a *Actuator) clean(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, task cleaner.Task) (gardencorev1beta1.Condition, error) {
	condition := v1beta1helper.GetOrInitConditionWithClock(a.clock, ex.Status.Conditions, v1alpha3.ConditionNodesCleaned)
	set := cleaner.DaemonSet(task, a.images.RegistryCleaner)
	// An earlier cleaner that is being deleted would not run a new task.
	if err := a.await(ctx, func() error { return applyToShoot(ctx, a.client, ex.Namespace, cleanerName, []client.Object{set}) }); err != nil {
		return condition, err
	}
	shoot, err := a.shootClient(ctx, ex.Namespace)
	if err != nil {
		return condition, err
	}
	var rollout cleaner.Rollout
	err = a.await(ctx, func() (err error) {
		if rollout, err = a.rollout(ctx, shoot, ex.Namespace); err != nil || len(rollout.Unclean) == 0 || a.maySkip(rollout) {
			return err
		}
		return retry.Waiting(fmt.Errorf("nodes not cleaned: %s; look at DaemonSet %s in the shoot", cleaner.Named(rollout.Unclean), v1alpha3.CleanerDaemonSet))
	})
	if err != nil {
		return condition, err
	}
	if !rollout.Started.IsZero() {
		cleaningSeconds.Observe(a.clock.Since(rollout.Started).Seconds())
	}
	status, reason, message := gardencorev1beta1.ConditionTrue, "AllNodesCleaned", "The last clean-up of removed caches reached every node."
	if skipped := rollout.Unclean; len(skipped) > 0 {
		log.Info("Skipped nodes that the cleaner cannot run on; they must notice that a removed cache does not answer", "nodes", skipped)
		nodesSkipped.Add(float64(len(skipped)))
		status, reason, message = gardencorev1beta1.ConditionFalse, "NodesSkipped", fmt.Sprintf("The last clean-up of removed caches skipped nodes: %s. "+
			"They pull directly as soon as they notice that the removed cache does not answer.", cleaner.Named(skipped))
	}
	_, err = a.requestDeletion(ctx, ex.Namespace, cleanerName)
	return v1beta1helper.UpdatedConditionWithClock(a.clock, condition, status, reason, message), err
}

// maySkip reports whether the clean-up may end although some nodes are not clean. It may skip nodes
// that have not been ready for skipAfter, and any node after the cleaner has run for skipAfter. The
// time of earlier attempts counts.
func (a *Actuator) maySkip(rollout cleaner.Rollout) bool {
	longAgo := func(t time.Time) bool { return !t.IsZero() && a.clock.Since(t) >= a.waits.skipAfter }
	return longAgo(rollout.Started) || longAgo(rollout.NotReadySince)
}

// smallShoot is the number of nodes up to which every call of rollout reads the nodes and pods. The
// DaemonSet's own status is slower: it reports a pod as ready some seconds after its node is clean.
const smallShoot = 20

// rollout returns the state of the cleaner's rollout. If the shoot is not small and the cleaner is
// new, rollout reads the nodes and pods, perhaps thousands, only after the DaemonSet reports that
// it is done. Before that, it returns the progress as an error.
func (a *Actuator) rollout(ctx context.Context, shoot client.Client, namespace string) (none cleaner.Rollout, err error) {
	mr, err := a.managedResource(ctx, namespace, cleanerName)
	if err != nil {
		return none, err
	}
	// A new task changes the ManagedResource's generation, because its Secret's name contains a hash.
	if err := health.CheckManagedResourceApplied(mr); err != nil && a.clock.Since(written(mr)) < a.waits.skipAfter {
		return none, retry.Waiting(err)
	} // after that time, perhaps a policy forbids the cleaner
	set := &appsv1.DaemonSet{}
	err = shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.CleanerDaemonSet}, set)
	if client.IgnoreNotFound(err) != nil {
		return none, fmt.Errorf("read DaemonSet %s in the shoot: %w", v1alpha3.CleanerDaemonSet, err)
	}
	isSmall := set.Status.ObservedGeneration >= set.Generation && set.Status.DesiredNumberScheduled <= smallShoot
	isNew := isPatient(ctx, 0) || a.clock.Since(set.CreationTimestamp.Time) < reportedFor
	if err := cleaner.Reported(set); isNew && !isSmall && err != nil {
		return none, retry.Waiting(err)
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes); err != nil {
		return none, fmt.Errorf("list the nodes of the shoot: %w", err)
	}
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels(cleaner.Labels())); err != nil {
		return none, fmt.Errorf("list the pods of DaemonSet %s in the shoot: %w", v1alpha3.CleanerDaemonSet, err)
	}
	rollout := cleaner.RolloutOf(set, pods.Items, nodes.Items)
	if rollout.Started.IsZero() { // no pod can be created
		rollout.Started = written(mr)
	}
	return rollout, nil
}
