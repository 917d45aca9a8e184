package fault

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// resolveTarget returns the target with its full name, or a *spec.UsageError if it does not exist.
func resolveTarget(ctx context.Context, t *kind.Testbed, target spec.Target) (spec.Target, error) {
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
	}
	return target.Choose(names, short)
}

// pods are the pods of a target in the shoot. There is at least one.
type pods struct {
	api   client.Client
	items []corev1.Pod
}

// podsOf returns the pods of a cache. It returns an error if it finds none.
func podsOf(ctx context.Context, t *kind.Testbed, target spec.Target) (pods, error) {
	service, err := t.Extension.Targets.Service(ctx, t, target.Name)
	if err != nil {
		return pods{}, err
	}
	api, err := client.New(t.Shoot.RESTConfig(), client.Options{})
	if err != nil {
		return pods{}, fmt.Errorf("client for %s: %w", t.Shoot.Name(), err)
	}
	list := &corev1.PodList{}
	if err := api.List(ctx, list, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return pods{}, fmt.Errorf("list the pods of %s: %w", target, err)
	}
	if len(list.Items) == 0 {
		return pods{}, fmt.Errorf("%s has no pod", target)
	}
	return pods{api, list.Items}, nil
}
