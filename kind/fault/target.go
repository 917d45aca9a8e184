package fault

import (
	"context"
	"strings"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// faultTarget returns the target with the full name of a part that is there.
func Resolve(ctx context.Context, t *kind.Testbed, target spec.Target) (spec.Target, error) {
	var names []string
	short := FirstLabel
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

func FirstLabel(host string) string {
	label, _, _ := strings.Cut(host, ".")
	return label
}
