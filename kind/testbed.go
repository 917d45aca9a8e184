package kind

import (
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
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

const (
	// DefaultPrefix is the prefix of the default testbed.
	DefaultPrefix = "registry-cache"
	// DefaultDirectory is the folder for the state of testbeds, below the root of the repository. Git
	// ignores it.
	DefaultDirectory = ".testbed"

	// maxPrefix keeps "<prefix>-shoot-control-plane" a valid host name that is easy to read.
	maxPrefix = 30
)

// Options choose a testbed. The zero value is the default testbed of the repository that the
// process runs in.
type Options struct {
	// Prefix starts the names of clusters and containers: <Prefix>-seed, <Prefix>-shoot. Testbeds with
	// different prefixes can run on one engine. The default is DefaultPrefix.
	Prefix string
	// Root is the root of the repository that the extension is built and installed from. The default
	// is the working directory, or its closest parent, with the go.mod of this module.
	Root string
	// Directory holds the state of testbeds, one folder per prefix. The default is DefaultDirectory
	// below Root.
	Directory string
	// NodeImage is the reference of a stock kindest/node image, instead of the configuration's or one
	// that is built here. The default is empty.
	NodeImage string
	// Configuration is what Up applies; its defaults must be set, see package configuration. If it is
	// nil, Up applies the configuration of the last Up, or the default.
	Configuration *configuration.Testbed
	// Replace lets Up replace a running testbed of the same prefix that another checkout owns, if no
	// other process works on it. Without it, Up returns an *OtherCheckoutError.
	Replace bool
	// Claimed is a function that Up calls, before it removes anything, when it knows that it may use
	// the prefix: no other process works on the testbed, and no other checkout owns it or Replace is
	// set. Callers remove their earlier results there. It may be nil.
	Claimed func()
	// Locks is the folder of the locks, which all checkouts on this machine share. The default is
	// lock.Directory.
	Locks string
	// Out receives one line per finished step. The default is os.Stderr.
	Out io.Writer
}

// Testbed is a seed cluster, a shoot cluster and everything that belongs to them. It is safe for
// concurrent use, with two exceptions: Up, Attach and Down need it exclusively, and only one caller
// at a time may install the extension.
type Testbed struct {
	// Prefix starts the names of clusters and containers.
	Prefix string
	// Root is the root of the repository.
	Root string
	// Config is the configuration that Up applies.
	Config *configuration.Testbed
	// State is the folder with the state.
	State State
	// Replace and Claimed are those of Options.
	Replace bool
	Claimed func()
	// Recorder prints and records steps.
	Recorder *progress.Recorder
	Parts

	unreadable error // why the configuration of the last Up cannot be read
	locks      lockFiles
}

// New returns the testbed that the options choose, whether it exists or not. It fails if the prefix
// cannot be part of a host name, or outside of the repository.
func New(options Options) (*Testbed, error) {
	if options.Prefix == "" {
		options.Prefix = DefaultPrefix
	}
	if err := validatePrefix(options.Prefix); err != nil {
		return nil, err
	}
	if options.Root == "" {
		root, err := repositoryRoot()
		if err != nil {
			return nil, err
		}
		options.Root = root
	}
	if options.Directory == "" {
		options.Directory = filepath.Join(options.Root, DefaultDirectory)
	}
	if options.Locks == "" {
		options.Locks = lock.Directory()
	}
	if options.Out == nil {
		options.Out = os.Stderr
	}
	t := &Testbed{
		Prefix:   options.Prefix,
		Root:     options.Root,
		State:    State(filepath.Join(options.Directory, options.Prefix)),
		locks:    newLockFiles(options.Locks, options.Prefix, options.Root),
		Replace:  options.Replace,
		Claimed:  options.Claimed,
		Recorder: progress.New(options.Out),
	}
	t.configure(options.Configuration, options.NodeImage)
	return t, nil
}

func validatePrefix(prefix string) error {
	if len(prefix) > maxPrefix {
		return fmt.Errorf("prefix %q is longer than %d characters", prefix, maxPrefix)
	}
	if problems := validation.IsDNS1123Label(prefix); len(problems) > 0 {
		return fmt.Errorf("prefix %q: %s", prefix, problems[0])
	}
	return nil
}

// repositoryRoot returns the working directory, or its closest parent, with the go.mod of the main
// module. Folders below it have other modules.
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

// Relative returns a path relative to the root of the repository, for messages.
func (t *Testbed) Relative(path string) string {
	if short, err := filepath.Rel(t.Root, path); err == nil {
		return short
	}
	return path
}

// Step returns a function that runs part as a step of the Recorder.
func (t *Testbed) Step(name string, part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return t.Recorder.Step(ctx, name, part) }
}

// Parts are what Up or Attach found or created. Each is nil until then.
type Parts struct {
	// Log is the log of Gardener's components, see State.OpenLog.
	Log logr.Logger
	// Planted is the bug that Build compiles into the shipped binaries, or nil.
	Planted *PlantedBug
	// Engine is the Docker Engine that the testbed runs on.
	Engine *engine.Engine
	// NodeImage is the reference of the node image in use. Only Up sets it.
	NodeImage string
	// CA signs the certificates of the upstreams. The nodes trust it.
	CA *certificate.CA
	// Images are the images of Binaries. Up sets all of them, AttachGardenlet those of Gardener.
	Images image.Set
	// Seed and Shoot are the clusters.
	Seed, Shoot *cluster.Cluster
	// Upstreams are the known upstream registries.
	Upstreams upstream.Registries
	// Gardenlet runs gardenlet's flows for the Shoot.
	Gardenlet *gardenlet.Gardenlet
}

// Upstream returns the registry with this host name, or nil if it is not known.
func (t *Testbed) Upstream(host string) *upstream.Registry { return t.Upstreams.Get(host) }

// Nodes returns the nodes of both clusters.
func (t *Testbed) Nodes() []*cluster.Node { return slices.Concat(t.Seed.Nodes(), t.Shoot.Nodes()) }

// UpstreamOptions returns the options that Up starts an upstream with. The host name must be unique
// on the machine, see upstream.Host. Callers may add options before they call StartUpstream.
func (t *Testbed) UpstreamOptions(host string) upstream.Options {
	return upstream.Options{
		Prefix:  t.Prefix,
		Host:    host,
		Network: cluster.NetworkName,
		CA:      t.CA,
		Image:   t.Images[upstream.Binary().Name],
	}
}

// StartUpstream starts another upstream, see upstream.Start. It runs until StopUpstream or Down.
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

// StartProxy starts an HTTP proxy for the upstreams. Its host name is proxy.upstream.test for the
// default prefix. It runs until its Remove or Down.
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

// CachedUpstreams returns the host names of the upstreams that have a cache in the Shoot after Up.
// It is empty if the configuration has a manifest, which then decides that.
func (t *Testbed) CachedUpstreams() []string { return t.Hosts(t.Config.Cached()) }
