package fault

import (
	"context"
	"strings"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// ResolveTarget returns the target with its full name. It returns a *spec.UseError if the testbed
// has no such target.
func ResolveTarget(ctx context.Context, t *kind.Testbed, target spec.Target) (spec.Target, error) {
	var names []string
	short := spec.ShortHost
	switch target.Role {
	case spec.Upstream:
		for _, registry := range t.Upstreams.All() {
			names = append(names, registry.Host())
		}
	case spec.Cache:
		services, _, err := cache.List(ctx, t.Shoot)
		if err != nil {
			return target, err
		}
		for _, service := range services {
			if host := service.Annotations[v1alpha3.AnnotationUpstream]; host != "" {
				names = append(names, host)
			}
		}
	case spec.Node:
		for _, node := range t.Shoot.Nodes() {
			names = append(names, node.Name())
		}
		short = func(name string) string { return strings.TrimPrefix(name, t.ShootName()+"-") }
	case spec.Seed, spec.Shoot:
		names = []string{spec.API}
	case spec.Extension:
		names = []string{""}
	}
	return target.Choose(byShortName(names, short))
}

// byShortName maps short names to full names. Names with the same short name are mapped by their
// full names.
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
