package kind

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

const (
	// DefaultPrefix is the prefix of the default testbed.
	DefaultPrefix = upstream.DefaultPrefix
	// DefaultDirectory is the folder for the state of testbeds, below the root of the repository.
	DefaultDirectory = ".testbed"

	// maxPrefix bounds the length of a prefix: "<prefix>-shoot-control-plane" is a host name.
	maxPrefix = 30
)

// Options choose a testbed. The zero value is the default testbed of the current repository.
type Options struct {
	Prefix    string // of the names of clusters and containers; the default is DefaultPrefix
	Root      string // the root of the repository; the default is the closest folder with its go.mod
	Directory string // contains a state folder for each prefix; the default is DefaultDirectory below Root
	NodeImage string // a stock kindest/node image instead of the configuration's or a built one
	Garden    *bool  // replaces the field in the configuration unless it is nil
	// Extension is what the testbed installs, unless the configuration describes another one.
	Extension Extension
	// Configuration is what Up applies. Its defaults must already be set. If it is nil, Up applies the
	// configuration of the last Up, or configuration.Default.
	Configuration *configuration.Testbed
	Locks         string    // the folder of the locks; the default is file.LockDirectory, which all checkouts share
	Out           io.Writer // receives a line for each finished or long-running step; the default is os.Stderr
}

// Testbed is a seed cluster, a shoot cluster and what belongs to them. It is safe for concurrent
// use, except for Up, Attach, Down and the installation of the extension.
type Testbed struct {
	Prefix    string                 // see Options
	Root      string                 // see Options
	Extension Extension              // see Options
	Config    *configuration.Testbed // what Up applies
	State     State                  // the folder with the state
	Recorder  *progress.Recorder     // prints and records steps
	Parts
	lock

	unreadable error // why Config cannot be used
}

// New returns the testbed that the options choose, whether it exists or not.
func New(options Options) (*Testbed, error) {
	options.Prefix = cmp.Or(options.Prefix, DefaultPrefix)
	if len(options.Prefix) > maxPrefix {
		return nil, fmt.Errorf("prefix %q is longer than %d characters", options.Prefix, maxPrefix)
	}
	if problems := validation.IsDNS1123Label(options.Prefix); len(problems) > 0 {
		return nil, fmt.Errorf("prefix %q: %s", options.Prefix, problems[0])
	}
	if options.Root == "" {
		var err error
		if options.Root, err = repositoryRoot(); err != nil {
			return nil, err
		}
	}
	options.Directory = cmp.Or(options.Directory, filepath.Join(options.Root, DefaultDirectory))
	options.Locks = cmp.Or(options.Locks, file.LockDirectory())
	if options.Out == nil {
		options.Out = os.Stderr
	}
	t := &Testbed{
		Prefix: options.Prefix, Root: options.Root, Extension: options.Extension,
		State:    State(filepath.Join(options.Directory, options.Prefix)),
		lock:     newLock(options.Locks, options.Prefix, options.Root),
		Recorder: progress.New(options.Out),
	}
	t.configure(options)
	return t, nil
}

// repositoryRoot searches upwards from os.Getwd for the folder with the go.mod of ModulePath.
func repositoryRoot() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for start := directory; ; directory = filepath.Dir(directory) {
		content, err := os.ReadFile(filepath.Join(directory, "go.mod"))
		if err == nil && modfile.ModulePath(content) == ModulePath {
			return directory, nil
		}
		if directory == filepath.Dir(directory) {
			return "", fmt.Errorf("no go.mod of %s in %s or above it: run this command inside the repository", ModulePath, start)
		}
	}
}

// SeedName returns the name of the seed cluster.
func (t *Testbed) SeedName() string { return t.Prefix + "-seed" }

// ShootName returns the name of the shoot cluster.
func (t *Testbed) ShootName() string { return t.Prefix + "-shoot" }

// Relative returns path as a path relative to the root of the repository, for messages.
func (t *Testbed) Relative(path string) string {
	if short, err := filepath.Rel(t.Root, path); err == nil {
		return short
	}
	return path
}

// Step returns a function that runs the function part as a step of the Recorder.
func (t *Testbed) Step(name string, part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return t.Recorder.Step(ctx, name, part) }
}

// Parts contains what Up or Attach found or created. Until then, its fields are empty.
type Parts struct {
	Log         logr.Logger          // of Gardener's components, see State.OpenLog
	Engine      *engine.Engine       // the Docker Engine
	NodeImage   string               // the reference of the seed's node image; only Up sets it
	ShootImage  string               // the reference of the shoot's node image; only Up sets it
	CA          *certificate.CA      // signs the certificates of the upstreams; nodes trust it
	Images      image.Set            // Up sets the images of all Binaries; AttachGardenlet sets only Gardener's
	Seed, Shoot *cluster.Cluster     // the clusters
	Upstreams   upstream.Registries  // the known upstream registries
	Gardenlet   *gardenlet.Gardenlet // runs gardenlet's flows for the Shoot
}

// Upstream returns the registry with this host name, or nil if it is not known.
func (t *Testbed) Upstream(host string) *upstream.Registry { return t.Upstreams.Get(host) }

// Nodes returns the nodes of both clusters.
func (t *Testbed) Nodes() []*cluster.Node { return slices.Concat(t.Seed.Nodes(), t.Shoot.Nodes()) }

// UpstreamOptions returns the options with which Up starts an upstream. The host must be unique on
// the machine, see upstream.Host.
func (t *Testbed) UpstreamOptions(host string) upstream.Options {
	return upstream.Options{
		Prefix: t.Prefix, Host: host, Network: cluster.NetworkName, CA: t.CA, Image: t.Images[upstream.Binary().Name],
	}
}

// StartUpstream starts an upstream, which runs until StopUpstream or Down is called. See
// upstream.Start.
func (t *Testbed) StartUpstream(ctx context.Context, o upstream.Options) (*upstream.Registry, error) {
	registry, err := upstream.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	t.Upstreams.Add(registry)
	return registry, nil
}

// StopUpstream removes an upstream and the images in it.
func (t *Testbed) StopUpstream(ctx context.Context, registry *upstream.Registry) error {
	if err := registry.Remove(ctx); err != nil {
		return fmt.Errorf("stop upstream: %w", err)
	}
	t.Upstreams.Remove(registry.Host())
	return nil
}

// StartProxy starts an HTTP proxy, which runs until its Remove or Down is called. With the default
// prefix, the proxy's host is proxy.upstream.test.
func (t *Testbed) StartProxy(ctx context.Context) (*upstream.Proxy, error) {
	return upstream.StartProxy(ctx, t.UpstreamOptions(upstream.Host(t.Prefix, "proxy")))
}

// Hosts returns the host names of the upstreams with these names in the configuration.
func (t *Testbed) Hosts(names []string) []string {
	hosts := make([]string, 0, len(names))
	for _, name := range names {
		hosts = append(hosts, upstream.Host(t.Prefix, name))
	}
	return hosts
}

// CachedUpstreams returns the hosts of the upstreams for which Up configures the extension. See
// configuration.Testbed.Cached.
func (t *Testbed) CachedUpstreams() []string { return t.Hosts(t.Config.Cached()) }
