package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// ResolveTarget returns the target with its full name, or a *spec.UsageError if it does not exist.
func ResolveTarget(ctx context.Context, t *kind.Testbed, target spec.Target) (spec.Target, error) {
	var names []string
	short := spec.ShortHost
	switch target.Role {
	case spec.Upstream:
		names = t.Upstreams.Hosts()
	case spec.Cache:
		if t.Extension.Targets == nil {
			break
		}
		var err error
		if names, err = t.Extension.Targets.Names(ctx, t); err != nil {
			return target, err
		}
	case spec.Node:
		names = cluster.Names(t.Shoot.Nodes())
		short = func(name string) string { return strings.TrimPrefix(name, t.ShootName()+"-") }
	case spec.Extension:
		names = []string{""}
	}
	return target.Choose(byShortName(names, short))
}

// byShortName maps short names to full names. If several names have the same short name, it maps
// each of these full names to itself.
func byShortName(names []string, short func(string) string) map[string]string {
	count, parts := map[string]int{}, map[string]string{}
	for _, name := range names {
		count[short(name)]++
	}
	for _, name := range names {
		key := short(name)
		if count[key] > 1 {
			key = name
		}
		parts[key] = name
	}
	return parts
}

// Pods are the pods of a target. There is at least one, and all are in one namespace.
type Pods struct {
	of      spec.Target
	Cluster *cluster.Cluster
	api     client.Client
	items   []corev1.Pod
}

// PodsOf returns the pods of the extension or of a cache. It returns an error if it finds none.
func PodsOf(ctx context.Context, t *kind.Testbed, target spec.Target) (Pods, error) {
	if target.Role == spec.Extension {
		return listPods(ctx, target, t.Seed, client.InNamespace(t.Extension.Namespace()))
	}
	service, err := t.Extension.Targets.Service(ctx, t, target.Name)
	if err != nil {
		return Pods{}, err
	}
	return listPods(ctx, target, t.Shoot, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector))
}

func listPods(ctx context.Context, target spec.Target, c *cluster.Cluster, options ...client.ListOption) (Pods, error) {
	api, err := client.New(c.RESTConfig(), client.Options{})
	if err != nil {
		return Pods{}, fmt.Errorf("client for %s: %w", c.Name(), err)
	}
	list := &corev1.PodList{}
	if err := api.List(ctx, list, options...); err != nil {
		return Pods{}, fmt.Errorf("list the pods of %s: %w", target, err)
	}
	if len(list.Items) == 0 {
		return Pods{}, fmt.Errorf("%s has no pod", target)
	}
	return Pods{target, c, api, list.Items}, nil
}

// First returns the running pod whose name sorts first.
func (p Pods) First() (*corev1.Pod, error) {
	running := slices.DeleteFunc(slices.Clone(p.items), func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
	})
	if len(running) == 0 {
		return nil, fmt.Errorf("%s has no running pod", p.of)
	}
	return new(slices.MinFunc(running, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })), nil
}
