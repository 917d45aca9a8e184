package kind

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// faultTarget returns the target with the full name of a part that is there.
func (t *Testbed) faultTarget(ctx context.Context, target fault.Target) (fault.Target, error) {
	var names []string
	short := firstLabel
	switch target.Role {
	case fault.Upstream:
		for _, registry := range t.registries() {
			names = append(names, registry.Host())
		}
	case fault.Cache:
		services, _, err := listCaches(ctx, t.shoot)
		if err != nil {
			return target, err
		}
		for _, service := range services {
			if host := service.Annotations[v1alpha3.AnnotationUpstream]; host != "" {
				names = append(names, host)
			}
		}
	case fault.Node:
		for _, node := range t.shoot.Nodes() {
			names = append(names, node.Name())
		}
		short = func(name string) string { return strings.TrimPrefix(name, t.shootName()+"-") }
	case fault.Seed, fault.Shoot:
		names = []string{fault.API}
	case fault.Extension:
		names = []string{""}
	}
	return target.Choose(byShortName(names, short))
}

// byShortName returns the names by their short ones. Those that would have the same one have none: either could be meant.
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

func firstLabel(host string) string {
	label, _, _ := strings.Cut(host, ".")
	return label
}

// serviceOf returns the Service of the cache of an upstream.
func (t *Testbed) serviceOf(ctx context.Context, host string) (*corev1.Service, error) {
	services, _, err := listCaches(ctx, t.shoot)
	if err != nil {
		return nil, err
	}
	for _, service := range services {
		if service.Annotations[v1alpha3.AnnotationUpstream] == host {
			return &service, nil
		}
	}
	return nil, fmt.Errorf("there is no Service of the cache of %s", host)
}
