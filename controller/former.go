package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// formerServices returns the Services of caches that were deployed under another name. A node uses the old address until
// gardener-node-agent has applied an OperatingSystemConfig with the new one, which takes minutes; an address that nobody
// answers at would cost each of its requests a timeout. So the old Service stays beside the new one, and goes with the
// reconciliation after the one that told the nodes.
func (t *target) formerServices(shoot cache.Shoot) ([]client.Object, error) {
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

// underFormerNames is the config with the names that the Services of caches had before: what was deployed last, as long as
// nodes do not know of the new ones, or as the next reconciliation is but another attempt of this one, moments later.
func (t *target) underFormerNames() *v1alpha3.RegistryConfig {
	config := t.config.DeepCopy()
	for i := range config.Caches {
		if was := t.before.deployed(config.Caches[i].Upstream); was != nil {
			config.Caches[i].ServiceNameSuffix = was.ServiceNameSuffix
		}
	}
	return config
}
