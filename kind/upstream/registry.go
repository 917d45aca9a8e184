package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Registry is one upstream of a testbed.
type Registry struct{ instance }

// List returns the upstreams of a testbed, running or not, sorted by host name.
func List(ctx context.Context, prefix string) ([]*Registry, error) {
	docker, err := connect()
	if err != nil {
		return nil, err
	}
	found, err := instances(ctx, docker, prefix, hostLabel, "")
	if err != nil {
		return nil, err
	}
	all := []*Registry{}
	for _, one := range found {
		all = append(all, &Registry{instance: one})
	}
	return all, nil
}

// Remove removes a testbed's upstreams and proxies, and their content. There may be none.
func Remove(ctx context.Context, prefix string) error {
	docker, err := connect()
	if err != nil {
		return err
	}
	for _, label := range []string{hostLabel, proxyLabel} {
		found, listed := instances(ctx, docker, prefix, label, "")
		err = errors.Join(err, listed)
		for _, one := range found {
			err = errors.Join(err, one.Remove(ctx))
		}
	}
	return err
}

// Reference returns the reference of an image, as pods use it.
func (r *Registry) Reference(repository, tag string) string {
	return fmt.Sprintf("%s/%s:%s", r.host, repository, tag)
}

// PushAddress returns host and port on this machine to which clients push over HTTP.
func (r *Registry) PushAddress() string { return r.localAddress(httpPort) }

// Push stores an image, through a port on localhost, and returns the image's digest. The access log
// records Push's requests with accesslog.AskerHarness.
func (r *Registry) Push(ctx context.Context, repository, tag string, img v1.Image) (v1.Hash, error) {
	ref, err := name.NewTag(r.PushAddress()+"/"+repository+":"+tag, name.Insecure, name.StrictValidation)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("push to %s: %w", r.host, err)
	}
	if err := remote.Write(ref, img, access(ctx)...); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", r.Reference(repository, tag), err)
	}
	return img.Digest()
}

func access(ctx context.Context) []remote.Option {
	// Without a user agent, go-containerregistry's first request would count as one of a cache.
	return []remote.Option{remote.WithContext(ctx), remote.WithUserAgent(userAgent)}
}

func running(ctx context.Context, docker client.APIClient, prefix, label, host string) (*instance, error) {
	found, err := instances(ctx, docker, prefix, label, host)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		if one.Running() {
			return &one, nil
		}
	}
	return nil, fmt.Errorf("testbed %s, host %s: %w", prefix, host, ErrNotRunning)
}

// Registries contains the known upstreams by host name. It is safe for concurrent use.
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
	return slices.SortedFunc(maps.Values(r.byHost), func(a, b *Registry) int { return strings.Compare(a.host, b.host) })
}

// Hosts returns the host names, sorted.
func (r *Registries) Hosts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.byHost))
}

// Describe looks up an image by tag or digest and calls read(index, img). From an index, it selects
// the Linux image for the architecture of this machine and the nodes. The image fetches its content
// lazily, so use it only inside read. All requests together may take 10 s. The access log records
// accesslog.AskerHarness for them.
func (r *Registry) Describe(ctx context.Context, repository, identifier string, read Reader) error {
	return r.describe(ctx, repository, identifier, runtime.GOARCH, read)
}

// Reader receives an image and the index that contains it. The index is nil if there is none.
type Reader func(index *v1.Descriptor, img v1.Image) error

func (r *Registry) describe(ctx context.Context, repository, identifier, architecture string, read Reader) error {
	ctx, cancel := progress.Within(ctx, 10*time.Second, "no answer")
	defer cancel()
	ref, err := r.local(repository, identifier)
	if err != nil {
		return fmt.Errorf("look up an image of %s: %w", r.host, err)
	}
	what := fmt.Sprintf("%s in %s", strings.TrimPrefix(ref.Name(), ref.Context().RegistryStr()+"/"), r.host)
	platform := v1.Platform{OS: "linux", Architecture: architecture}
	found, err := remote.Get(ref, append(access(ctx), remote.WithPlatform(platform))...)
	if err != nil {
		return fmt.Errorf("look up %s: %w", what, err)
	}
	img, err := found.Image()
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	var index *v1.Descriptor
	if found.MediaType.IsIndex() {
		index = &found.Descriptor
	}
	return read(index, img)
}

func (r *Registry) local(repository, identifier string) (name.Reference, error) {
	separator := ":"
	if strings.Contains(identifier, ":") {
		separator = "@"
	}
	return name.ParseReference(r.localAddress(httpPort)+"/"+repository+separator+identifier, name.Insecure, name.StrictValidation)
}
