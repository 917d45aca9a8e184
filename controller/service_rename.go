package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// previousServices returns the Services of caches that were deployed with another Service name. A
// node uses the old address until gardener-node-agent has applied an OperatingSystemConfig with the
// new one, which takes minutes. With no answer at the old address, each of its requests would wait
// for a timeout. So the previous Service stays next to the new one. The next reconciliation, after
// the nodes have been told, removes it.
func (t *target) previousServices(shoot cache.Shoot) ([]client.Object, error) {
	var services []client.Object
	for _, c := range t.config.Caches {
		was := t.before.deployed(c.Upstream)
		if was == nil || v1alpha3.ServiceName(was) == v1alpha3.ServiceName(&c) {
			continue
		}
		c.ServiceNameSuffix = was.ServiceNameSuffix
		service, err := cache.Service(c, shoot)
		if err != nil {
			return nil, err
		}
		services = append(services, service)
	}
	return services, nil
}

// withPreviousServiceNames returns the config with the last deployed Service names. It is the
// config to record as long as nodes do not know the new names, or if the next reconciliation only
// repeats this one.
func (t *target) withPreviousServiceNames() *v1alpha3.RegistryConfig {
	config := t.config.DeepCopy()
	for i := range config.Caches {
		if was := t.before.deployed(config.Caches[i].Upstream); was != nil {
			config.Caches[i].ServiceNameSuffix = was.ServiceNameSuffix
		}
	}
	return config
}
