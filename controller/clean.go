package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// clean runs the cleaner in the shoot until it did the task on every node, and asks for its deletion. The caller has to wait
// for that, with remove. When it returns without error, no node has the configuration any more, but those it returns, each
// with the reason: ones that were not ready, and, after a longer time, ones that the cleaner cannot run on. They are passed
// over lest one broken node holds up the shoot for ever.
func (a *Actuator) clean(ctx context.Context, log logr.Logger, namespace string, task cleaner.Task) ([]string, error) {
	set, err := cleaner.DaemonSet(task, a.images.RegistryCleaner)
	if err != nil {
		return nil, err
	}
	data, err := serialize(shootEncoder, []client.Object{set})
	if err != nil {
		return nil, err
	}
	if err := a.awaitEarlierCleaner(ctx, namespace); err != nil {
		return nil, err
	}
	started := time.Now()
	if err := apply(ctx, a.client, namespace, cleanerName, data, func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForShoot(c, namespace, cleanerName, origin, false)
	}); err != nil {
		return nil, err
	}
	passedOver, err := a.awaitCleaned(ctx, namespace)
	if err != nil {
		return nil, err
	}
	cleaningSeconds.Observe(time.Since(started).Seconds())
	nodesPassedOver.Add(float64(len(passedOver)))
	if len(passedOver) > 0 {
		log.Info("Not cleaning nodes that the cleaner cannot run on; they may keep a mirror that does not exist any more", "nodes", passedOver)
	}
	_, err = a.requestDeletion(ctx, namespace, cleanerName)
	return passedOver, err
}

// awaitEarlierCleaner waits for a cleaner that is on its way out: what is written to it now would go with it.
func (a *Actuator) awaitEarlierCleaner(ctx context.Context, namespace string) error {
	mr, err := a.managedResource(ctx, namespace, cleanerName)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case mr.DeletionTimestamp == nil:
		return nil
	}
	return a.remove(ctx, namespace, cleanerName)
}

// awaitCleaned waits until all nodes are clean. Nodes that are not ready for a while are not waited for, and returned; so are
// those that are ready, once the cleaner has tried for long, in this attempt and the ones before. The error names the nodes
// that are not clean.
func (a *Actuator) awaitCleaned(ctx context.Context, namespace string) ([]string, error) {
	shoot, err := a.shootClient(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var passedOver []string
	var unfinished error
	started := time.Now()
	look := func(patient bool) bool {
		var rollout cleaner.Rollout
		var age time.Duration
		if rollout, age, unfinished = a.rollout(ctx, shoot, namespace, patient); unfinished != nil {
			return false
		}
		passedOver, unfinished = rollout.Unclean(), rollout.Err()
		return unfinished == nil || a.mayPassOver(rollout, age, time.Since(started))
	}
	// As in awaitEndpoints, the requests do not get the time limit of the poll.
	limited, cancel := context.WithTimeout(ctx, a.waits.cleaned)
	defer cancel()
	closer := a.waits.reported
	err = slowing(a.waits.interval).Until(limited, true, true, func(context.Context) (bool, error) {
		elapsed := time.Since(started)
		patient := elapsed < closer
		if !patient { // not each time, because of what it reads
			closer = elapsed + min(elapsed, 2*a.waits.reported)
		}
		done := look(patient)
		if shootclient.NoAnswer(unfinished) {
			return false, unfinished
		}
		return done, nil
	})
	if shootclient.NoAnswer(unfinished) {
		return nil, unfinished
	}
	if err != nil && (ctx.Err() != nil || !look(false)) {
		return nil, fmt.Errorf("the nodes were not cleaned within %s; look at DaemonSet %s in the shoot: %w",
			a.waits.cleaned, v1alpha3.CleanerDaemonSet, errors.Join(unfinished, err))
	}
	return passedOver, nil
}

// mayPassOver says whether the clean-up may end without the nodes that it did not reach: ones that have not been ready for a
// while, be it since the attempt started, and ready ones that a cleaner of this age has not cleaned.
func (a *Actuator) mayPassOver(rollout cleaner.Rollout, age, elapsed time.Duration) bool {
	quiet := elapsed >= a.waits.notReady || !rollout.QuietSince.IsZero() && a.clock.Since(rollout.QuietSince) >= a.waits.notReady
	stuck := age >= a.waits.stuck && elapsed >= a.waits.notReady
	return (len(rollout.NotReady) == 0 || quiet) && (len(rollout.Unfinished) == 0 || stuck)
}

// slowing is for polls that take long if they take longer than usual: the time between two looks grows to five times the
// interval.
func slowing(interval time.Duration) wait.DelayFunc {
	return wait.Backoff{Duration: interval, Factor: 1.2, Steps: 100, Cap: 5 * interval}.DelayFunc()
}

// few is up to how many nodes they are all looked at each time. The DaemonSet reports that a pod is ready some seconds after
// the node is clean.
const few = 20

// rollout looks once, and returns for how long there has been a cleaner. What it returns is about the DaemonSet that was
// asked for, not about an earlier one. When patient, it reads nodes and pods, of which there may be a thousand, only if they
// are few, or if the DaemonSet reports that it is done.
func (a *Actuator) rollout(ctx context.Context, shoot client.Client, namespace string, patient bool) (cleaner.Rollout, time.Duration, error) {
	var none cleaner.Rollout
	mr, err := a.managedResource(ctx, namespace, cleanerName)
	if err != nil {
		return none, 0, err
	}
	// The generation changes with the task: the name of the Secret with the DaemonSet is a hash of its content.
	if err := health.CheckManagedResourceApplied(mr); err != nil {
		return none, 0, err
	}
	set := &appsv1.DaemonSet{}
	if err := shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.CleanerDaemonSet}, set); err != nil {
		return none, 0, fmt.Errorf("reading DaemonSet %s in the shoot: %w", v1alpha3.CleanerDaemonSet, err)
	}
	isSmall := set.Status.ObservedGeneration >= set.Generation && set.Status.DesiredNumberScheduled <= few
	if err := cleaner.Reported(set); patient && !isSmall && err != nil {
		return none, 0, err
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes); err != nil {
		return none, 0, fmt.Errorf("listing the nodes of the shoot: %w", err)
	}
	pods := &corev1.PodList{}
	if err := shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels(cleaner.Labels())); err != nil {
		return none, 0, fmt.Errorf("listing the pods of DaemonSet %s in the shoot: %w", v1alpha3.CleanerDaemonSet, err)
	}
	var age time.Duration
	if created := mr.CreationTimestamp; !created.IsZero() {
		age = a.clock.Since(created.Time)
	}
	return cleaner.RolloutOf(set, pods.Items, nodes.Items), age, nil
}
