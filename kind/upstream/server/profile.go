package server

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// Sites are more names of this server, on which a profile serves tokens and content.
type Sites struct {
	Sibling string // a host in the domain of the registry
	Foreign string // a host in another domain
}

// profiles are the handlers of the active faults of kind spec.Profile. A handler lives as long as
// its fault, because it remembers tokens and links. A fault that is added again does not know the
// tokens that it issued before.
type profiles struct {
	Sites

	mu      sync.Mutex
	running []runningProfile
}

// runningProfile is the handler for HTTP or HTTPS. The URLs of its sites have the same scheme.
type runningProfile struct {
	fault   spec.Fault
	secure  bool
	handler http.Handler
}

// nextKey is the key, in the context of a request, of the handler behind a profile. It differs for
// each request, because other faults may be between the profile and the registry.
type nextKey struct{ id string }

// wrap returns the handler that the profile of the fault describes, in front of next.
func (p *profiles) wrap(f spec.Fault, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.handlerOf(f, r).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nextKey{f.ID}, next)))
	})
}

func (p *profiles) handlerOf(f spec.Fault, r *http.Request) http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.running {
		if one.fault.Same(f) && one.secure == (r.TLS != nil) {
			return one.handler
		}
	}
	handler := f.Profile.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next, ok := r.Context().Value(nextKey{f.ID}).(http.Handler); ok {
			next.ServeHTTP(w, r)
		}
	}), p.sitesOf(r))
	p.running = append(p.running, runningProfile{f, r.TLS != nil, handler})
	return handler
}

// keep forgets the handlers of faults that are not active.
func (p *profiles) keep(active []spec.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = slices.DeleteFunc(p.running, func(one runningProfile) bool { return !slices.ContainsFunc(active, one.fault.Same) })
}

// The ports of the site registryprofile.Port.
const (
	OtherHTTP  = 8080
	OtherHTTPS = 8443
)

// sitesOf returns the base URLs of the sites, with the scheme of r.
func (s Sites) sitesOf(r *http.Request) map[string]string {
	scheme, port := "http://", OtherHTTP
	if r.TLS != nil {
		scheme, port = "https://", OtherHTTPS
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	sites := map[string]string{
		registryprofile.Port:    scheme + net.JoinHostPort(host, strconv.Itoa(port)),
		registryprofile.Sibling: scheme + s.Sibling,
		registryprofile.Foreign: scheme + s.Foreign,
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if address, _, err := net.SplitHostPort(local.String()); err == nil {
			sites[registryprofile.Private] = scheme + address
		}
	}
	return sites
}
