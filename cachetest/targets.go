package cachetest

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// targets finds caches by the hosts of their upstreams.
type targets struct{}

func (targets) Names(ctx context.Context, t *kind.Testbed) ([]string, error) {
	services, _, err := List(ctx, t.Shoot)
	var hosts []string
	for _, service := range services {
		if host := service.Annotations[v1alpha3.AnnotationUpstream]; host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts, err
}

func (targets) Service(ctx context.Context, t *kind.Testbed, host string) (*corev1.Service, error) {
	return ServiceOf(ctx, t, host)
}

func (targets) Prepare(ctx context.Context, t *kind.Testbed, f spec.Fault) (kind.Injection, error) {
	if f.Kind == spec.RecreateService {
		return prepareRecreation(ctx, t, f)
	}
	return prepareAnswers(ctx, t, f)
}
