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
	// DefaultPrefix names the testbed of a user who did not ask for another one.
	DefaultPrefix = "registry-cache"
	// DefaultDirectory is where the state of testbeds lies, below the root of the repository; git ignores it.
	DefaultDirectory = ".testbed"

	// maxPrefix keeps "<prefix>-shoot-control-plane" a valid host name with room to read.
	maxPrefix = 30
)

// Options say which testbed is meant. The zero value is the default testbed of the repository that the process runs in.
type Options struct {
	// Prefix begins the names of the clusters and containers: <Prefix>-seed, <Prefix>-shoot. Testbeds with different
	// prefixes live side by side on one engine. The default is DefaultPrefix.
	Prefix string
	// Root is the root of the repository, from which the extension is built and installed. The default is the closest
	// folder above the working directory that holds the go.mod of this module.
	Root string
	// Directory holds the state of testbeds, one folder per prefix. The default is DefaultDirectory below Root.
	Directory string
	// NodeImage is the reference of a stock kindest/node image to use instead of one built here, in place of that of the configuration.
	// The default is empty.
	NodeImage string
	// Configuration says what Up makes; its defaults have to be set, see package configuration. Nil is that of the Up before, and
	// where there was none the default.
	Configuration *configuration.Testbed
	// Replace lets Up replace a testbed of the same prefix that runs and belongs to another directory, as long as no other process
	// works on it. Otherwise it is a *OtherCheckoutError.
	Replace bool
	// Claimed is called by Up once it knows that the testbed is ours: no other process works on it, and it belongs to no other
	// directory, or may be replaced. What somebody still needs who uses it there is not to be removed before. Nil is nothing.
	Claimed func()
	// Locks is the folder of the locks, which all checkouts on this machine share. The default is
	// lock.Directory.
	Locks string
	// Out takes one line per finished step. The default is os.Stderr.
	Out io.Writer
}

// Testbed is a seed and a shoot cluster with all that belongs to them. Its methods may be used at the same time, but for Up, Attach
// and Down, which need it for themselves, and what installs the extension, which one caller at a time may do.
type Testbed struct {
	Prefix   string
	Root     string
	Override string // a stock node image, or empty
	// config is what the testbed is to be; unreadable is why that of the Up before could not be read.
	Config     *configuration.Testbed
	Unreadable error
	State      State
	locks      lockFiles
	Replace    bool
	Claimed    func()
	out        io.Writer
	Recorder   *progress.Recorder
	Parts
}

// New returns the testbed that the options describe; it does not look whether it exists. It fails for a prefix that
// cannot be a host name and outside of a repository.
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
		out:      options.Out,
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

// repositoryRoot is the closest folder at or above the working directory that holds the go.mod of the repository; there are others
// below it, of tools.
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
			return "", fmt.Errorf("no go.mod of %s in %s or above it: run this inside of the repository", ModulePath, start)
		}
	}
}

func (t *Testbed) SeedName() string { return t.Prefix + "-seed" }

func (t *Testbed) ShootName() string { return t.Prefix + "-shoot" }

// relative shortens a path for people who work in the root of the repository.
func (t *Testbed) Relative(path string) string {
	if short, err := filepath.Rel(t.Root, path); err == nil {
		return short
	}
	return path
}

// step makes a named, recorded step of a part.
func (t *Testbed) Step(name string, part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return t.Recorder.Step(ctx, name, part) }
}
