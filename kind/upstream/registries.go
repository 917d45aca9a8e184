package upstream

import (
	"maps"
	"slices"
	"sync"
)

// Registries are the known upstreams, by host name. It is safe for concurrent use.
type Registries struct {
	mu     sync.Mutex
	byHost map[string]*Registry
}

// Set replaces all registries.
func (r *Registries) Set(all []*Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHost = map[string]*Registry{}
	for _, registry := range all {
		r.byHost[registry.Host()] = registry
	}
}

// Add adds a registry.
func (r *Registries) Add(registry *Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byHost[registry.Host()] = registry
}

// Remove removes the registry with the host name.
func (r *Registries) Remove(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byHost, host)
}

// Get returns the registry with the host name, or nil.
func (r *Registries) Get(host string) *Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byHost[host]
}

// All returns the registries, sorted by host name.
func (r *Registries) All() []*Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	registries := make([]*Registry, 0, len(r.byHost))
	for _, host := range slices.Sorted(maps.Keys(r.byHost)) {
		registries = append(registries, r.byHost[host])
	}
	return registries
}

// Hosts returns the host names, sorted.
func (r *Registries) Hosts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.byHost))
}
