package kind

import (
	"maps"
	"slices"
	"sync"

	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// registries are upstreams by their host. Its methods may be used at the same time.
type registries struct {
	mu     sync.Mutex
	byHost map[string]*upstream.Registry
}

// set forgets all and keeps these.
func (r *registries) set(all []*upstream.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHost = map[string]*upstream.Registry{}
	for _, registry := range all {
		r.byHost[registry.Host()] = registry
	}
}

func (r *registries) add(registry *upstream.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHost[registry.Host()] = registry
}

func (r *registries) remove(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byHost, host)
}

// get returns nil for a host that is not known.
func (r *registries) get(host string) *upstream.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byHost[host]
}

// all are sorted by host.
func (r *registries) all() []*upstream.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	registries := make([]*upstream.Registry, 0, len(r.byHost))
	for _, host := range slices.Sorted(maps.Keys(r.byHost)) {
		registries = append(registries, r.byHost[host])
	}
	return registries
}
