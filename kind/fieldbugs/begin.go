package fieldbugs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/develop"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// mirrorsTimeout bounds the time until all nodes have configured the caches of the applied Shoot.
const mirrorsTimeout = time.Minute

// rolledOutTimeout bounds the rollout of caches. A running pull delays the termination of the old
// pod by up to 25 seconds.
const rolledOutTimeout = 2 * time.Minute

// workers are the short names of the workers of the default testbed.
var workers = []string{"worker", "worker2"}

func (r *Rig) begin(ctx context.Context, bug Bug) error {
	if _, err := r.run(ctx, []string{"fault", "delete"}); err != nil {
		return err
	}
	if err := r.Apply(ctx, bug.shoot()); err != nil {
		return err
	}
	var shoot status.Shoot
	missing := func(now status.Shoot) ([]string, error) {
		shoot = now
		return missingMirrors(now)
	}
	err := r.Await(ctx, "all workers have the mirrors of all caches", mirrorsTimeout, r.withoutProblems(missing))
	if err != nil {
		return err
	}
	return r.Await(ctx, "the caches run with the current configuration", rolledOutTimeout, func(ctx context.Context) (bool, string, error) {
		pending, err := r.pendingCaches(ctx, shoot.Namespace)
		if failed := new(CommandError); errors.As(err, &failed) {
			return false, failed.Error(), nil // the next poll retries
		}
		return err == nil && pending == "", pending, err
	})
}

// withoutProblems returns a condition for Await, which holds if find returns no problem.
func (r *Rig) withoutProblems(find func(status.Shoot) ([]string, error)) func(context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		shoot, err := r.Shoot(ctx)
		if err != nil {
			return false, "", err
		}
		problems, err := find(shoot)
		return len(problems) == 0, strings.Join(problems, "; "), err
	}
}

// pendingCaches returns why the caches are not rolled out, or an empty string. The Extension's
// status and the mirrors on nodes do not prove the rollout: if the addresses did not change, both
// can be up to date while the pods of the previous Shoot still run.
func (r *Rig) pendingCaches(ctx context.Context, namespace string) (string, error) {
	var resource resourcesv1alpha1.ManagedResource
	if err := r.getOf(ctx, "seed", namespace, &resource, "managedresource", v1alpha3.ManagedResourceCaches); err != nil {
		return "", err
	}
	if pending := health.CheckManagedResourceApplied(&resource); pending != nil {
		return fmt.Sprintf("not applied: %v", pending), nil
	}
	var caches appsv1.StatefulSetList
	if err := r.get(ctx, &caches, "statefulsets", "--selector=upstream-host"); err != nil {
		return "", err
	}
	if len(caches.Items) == 0 {
		return "the shoot has no cache", nil
	}
	if pending := develop.CachesRolledOut(caches.Items); pending != nil {
		return fmt.Sprintf("not rolled out: %v", pending), nil
	}
	return "", nil
}

// missingMirrors returns a problem for each worker that is missing or not ready, and for each cache
// whose current address is not the first mirror on a worker.
func missingMirrors(shoot status.Shoot) ([]string, error) {
	caches, err := caches(shoot)
	if err != nil {
		return nil, err
	}
	var missing []string
	if len(caches) == 0 {
		missing = append(missing, "the status of the Extension has no cache")
	}
	for _, worker := range workers {
		i := slices.IndexFunc(shoot.Nodes, func(n status.Node) bool { return shortNode(n.Name) == worker })
		if i < 0 {
			missing = append(missing, "the testbed has no node "+worker)
			continue
		}
		if !shoot.Nodes[i].Ready {
			missing = append(missing, worker+" is not ready")
		}
		for _, cache := range caches {
			if address := firstHost(shoot.Nodes[i], cache.Upstream); address != cache.Endpoint {
				missing = append(missing, fmt.Sprintf("%s uses %q for %s, but the cache is at %s", worker, address, cache.Upstream, cache.Endpoint))
			}
		}
	}
	return missing, nil
}

// firstHost returns the first mirror of an upstream on a node. The upstream is a full host name.
func firstHost(node status.Node, upstream string) string {
	for _, mirror := range node.Mirrors {
		if mirror.Upstream == upstream && len(mirror.Hosts) > 0 {
			return mirror.Hosts[0]
		}
	}
	return ""
}

func caches(shoot status.Shoot) ([]v1alpha3.RegistryCacheStatus, error) {
	var registries v1alpha3.RegistryStatus
	for _, extension := range shoot.Extensions {
		if extension.Type != "registry-cache" || len(extension.ProviderStatus) == 0 {
			continue
		}
		if err := json.Unmarshal(extension.ProviderStatus, &registries); err != nil {
			return nil, fmt.Errorf("status of the Extension: %w", err)
		}
	}
	return registries.Caches, nil
}
