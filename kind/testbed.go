package kind

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/progress"
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
