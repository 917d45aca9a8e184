package cachetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/retry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// cachesTimeout bounds the replacement of caches' pods. A pod drains pulls for up to 25 seconds.
	cachesTimeout  = 2 * time.Minute
	cachesInterval = 200 * time.Millisecond // short, since the API servers are on this machine
)

// awaitCaches waits until the caches are replaced after a rollout of the extension.
func awaitCaches(ctx context.Context, t *kind.Testbed) error {
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	shoot, err := gardener.NewShootClient(t.Shoot.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the shoot: %w", err)
	}
	namespace := gardenlet.Namespace(gardenlet.DefaultShoot)
	defer gardener.RequeueDeletions(ctx, seed.Client(), namespace)()
	return waitForCaches(ctx, seed.Client(), namespace, shoot.Client())
}

// waitForCaches waits until gardener-resource-manager has applied the caches and all are ready.
func waitForCaches(ctx context.Context, seed client.Client, namespace string, shoot client.Client) error {
	ctx, cancel := progress.Within(ctx, cachesTimeout, "the caches were not replaced")
	defer cancel()
	if workers, err := countWorkers(ctx, shoot); err != nil || workers == 0 {
		progress.Skip(ctx, "no nodes, the shoot is hibernated")
		return err
	}
	err := retry.Until(ctx, cachesInterval, func(ctx context.Context) (bool, error) {
		resource := &resourcesv1alpha1.ManagedResource{}
		err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha3.ManagedResourceCaches}, resource)
		if err == nil {
			err = health.CheckManagedResource(resource)
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("managed resource %s/%s: %w", namespace, v1alpha3.ManagedResourceCaches, err)
	}
	return retry.Until(ctx, cachesInterval, func(ctx context.Context) (bool, error) {
		sets := &appsv1.StatefulSetList{}
		if err := shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
			return retry.MinorError(fmt.Errorf("list the caches: %w", err))
		}
		if err := RolledOut(sets.Items); err != nil {
			return retry.MinorError(err)
		}
		progress.Note(ctx, "%d caches", len(sets.Items))
		return retry.Ok()
	})
}

// countWorkers returns the number of nodes of the shoot, not counting the control plane.
func countWorkers(ctx context.Context, shoot client.Client) (int, error) {
	workers, err := labels.Parse("!node-role.kubernetes.io/control-plane")
	if err != nil {
		return 0, err
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes, client.MatchingLabelsSelector{Selector: workers}); err != nil {
		return 0, fmt.Errorf("list the nodes of the shoot: %w", err)
	}
	return len(nodes.Items), nil
}

// RolledOut returns an error that names each cache with a pod of an earlier revision or a pod
// that is not ready. It returns nil if there is no such cache.
func RolledOut(caches []appsv1.StatefulSet) error {
	var errs []error
	for _, cache := range caches {
		if progressing, reason := health.IsStatefulSetProgressing(&cache); progressing {
			errs = append(errs, fmt.Errorf("cache %s: %s", cache.Name, reason))
		} else if err := health.CheckStatefulSet(&cache); err != nil {
			errs = append(errs, fmt.Errorf("cache %s: %w", cache.Name, err))
		}
	}
	return errors.Join(errs...)
}
