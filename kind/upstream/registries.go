package upstream

import (
	"maps"
	"slices"
	"sync"
)

// registries are upstreams by their host. Its methods may be used at the same time.
type Registries struct {
	mu     sync.Mutex
	byHost map[string]*Registry
}

// set forgets all and keeps these.
func (r *Registries) Set(all []*Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHost = map[string]*Registry{}
	for _, registry := range all {
		r.byHost[registry.Host()] = registry
	}
}

func (r *Registries) Add(registry *Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHost[registry.Host()] = registry
}

func (r *Registries) Remove(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byHost, host)
}

// get returns nil for a host that is not known.
func (r *Registries) Get(host string) *Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byHost[host]
}

// all are sorted by host.
func (r *Registries) All() []*Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	registries := make([]*Registry, 0, len(r.byHost))
	for _, host := range slices.Sorted(maps.Keys(r.byHost)) {
		registries = append(registries, r.byHost[host])
	}
	return registries
}
