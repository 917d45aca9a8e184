package kind

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// faultTarget returns the target with the full name of a part that is there.
func (t *Testbed) faultTarget(ctx context.Context, target fault.Target) (fault.Target, error) {
	parts := map[string]string{}
	switch target.Role {
	case fault.Upstream:
		for _, registry := range t.registries() {
			parts[firstLabel(registry.Host())] = registry.Host()
		}
	case fault.Cache:
		services, _, err := listCaches(ctx, t.shoot)
		if err != nil {
			return target, err
		}
		for _, service := range services {
			if host := service.Annotations["upstream"]; host != "" {
				parts[firstLabel(host)] = host
			}
		}
	case fault.Node:
		for _, node := range t.shoot.Nodes() {
			parts[strings.TrimPrefix(node.Name(), t.shootName()+"-")] = node.Name()
		}
	case fault.Seed, fault.Shoot:
		parts[fault.API] = fault.API
	case fault.Extension:
		parts[""] = ""
	}
	return target.Choose(parts)
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
		if service.Annotations["upstream"] == host {
			return &service, nil
		}
	}
	return nil, fmt.Errorf("there is no Service of the cache of %s", host)
}
