// Package image builds container images without a container engine and without pulling: static Go
// binaries on scratch, and test images of random content that a pod can run.
//
// Build runs only the go command. Load imports images into the containerd of nodes, with ctr, and
// LoadIntoEngine into the Docker Engine.
package image

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// Registry is the host of every reference. No such host exists, so nodes cannot pull these images.
	Registry = "registry-cache.testbed"
	// NonRoot is the user of an image whose Binary sets no User.
	NonRoot = "65532:65532"
)

// Binary describes an image with one static Go binary.
type Binary struct {
	// Name is the last part of the image's repository. The binary is /<Name> unless Path is set.
	Name    string
	Package string // the import path of a main package of the main module or of one of its dependencies
	// Module is the folder of another module, in which the package is built, or empty for the main
	// module. The go.mod of the other module pins the package with a tool directive and keeps the
	// program's dependencies out of the main module.
	Module  string
	Ldflags string // linker flags, for example -X assignments; without Debug, after "-s -w"
	// Debug makes the build suitable for a debugger: with symbols, and without optimizations in the
	// main module.
	Debug      bool
	Path       string   // the absolute path of the binary in the image
	Entrypoint []string // defaults to the path of the binary
	Cmd        []string // the default arguments
	Env        []string // NAME=value
	User       string   // "uid:gid"; defaults to NonRoot
	// Entries are further files and directories, for example {Path: "/tmp", Mode: fs.ModeDir | 0o777}.
	Entries []Entry
}

// Built is an image, with the reference that it has on the nodes.
type Built struct {
	Name string // the name of the Binary
	Ref  string // registry-cache.testbed/<name>:<first 12 hex digits of the image's digest>
	// Image reads the binary in the directory given to Build whenever a layer is read.
	Image      v1.Image
	Executable string // the path of the binary on this machine
}

// Build compiles the packages of bins into dir and returns one image for each. The current
// directory must be inside the main module. The same sources, Go version and bins give
// byte-identical images. If a name is invalid, Build compiles nothing.
func Build(ctx context.Context, dir string, bins ...Binary) ([]Built, error) {
	for _, bin := range bins {
		if _, err := name.NewRepository(Registry + "/" + bin.Name); err != nil || bin.Name == "" {
			return nil, fmt.Errorf("image name %q: must be a repository name such as registry-cache", bin.Name)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve build directory %q: %w", dir, err)
	}
	if err := compile(ctx, dir, bins); err != nil {
		return nil, err
	}
	built := make([]Built, 0, len(bins))
	for _, bin := range bins {
		b, err := assemble(bin, bin.executable(dir))
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", bin.Name, err)
		}
		built = append(built, b)
	}
	return built, nil
}

// WriteArchive writes the images in the format of docker save, for "docker load" and "ctr images
// import". Layers are not compressed, since compression would take seconds per image.
func WriteArchive(w io.Writer, built ...Built) error {
	images := make(map[name.Reference]v1.Image, len(built))
	for _, b := range built {
		tag, err := name.NewTag(b.Ref)
		if err != nil {
			return fmt.Errorf("image reference %q: %w", b.Ref, err)
		}
		images[tag] = b.Image
	}
	if err := tarball.MultiRefWrite(images, w); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	return nil
}

func (b Binary) path() string { return cmp.Or(b.Path, "/"+path.Base(b.Name)) }

// assemble returns the image. One layer contains the entries, and another contains the binary.
func assemble(bin Binary, executable string) (Built, error) {
	var layers []v1.Layer
	for _, entries := range [][]Entry{bin.Entries, {{Path: bin.path(), Mode: 0o755, Source: executable}}} {
		if len(entries) == 0 {
			continue
		}
		layer, err := newLayer(entries...)
		if err != nil {
			return Built{}, err
		}
		layers = append(layers, layer)
	}
	img, err := withConfig(bin, layers)
	if err != nil {
		return Built{}, err
	}
	digest, err := img.Digest()
	if err != nil {
		return Built{}, fmt.Errorf("digest: %w", err)
	}
	ref := fmt.Sprintf("%s/%s:%s", Registry, bin.Name, digest.Hex[:12])
	return Built{Name: bin.Name, Ref: ref, Image: img, Executable: executable}, nil
}

// withConfig returns an image of the layers, with a fixed creation time for a reproducible digest.
func withConfig(bin Binary, layers []v1.Layer) (v1.Image, error) {
	config := v1.Config{Entrypoint: bin.Entrypoint, Cmd: bin.Cmd, Env: bin.Env, User: cmp.Or(bin.User, NonRoot), WorkingDir: "/"}
	if len(config.Entrypoint) == 0 {
		config.Entrypoint = []string{bin.path()}
	}
	img, err := filetree.Image(config, types.OCIManifestSchema1, types.OCIConfigJSON, layers...)
	if err != nil {
		return nil, fmt.Errorf("append layers: %w", err)
	}
	return mutate.CreatedAt(img, v1.Time{Time: time.Unix(0, 0).UTC()})
}

// Set contains built images by name.
type Set map[string]Built

// Pick returns the images with the given names. The set must contain them.
func (all Set) Pick(names ...string) []Built {
	picked := make([]Built, 0, len(names))
	for _, name := range names {
		picked = append(picked, all[name])
	}
	return picked
}

// Load loads into each node's containerd the images that the node does not have. It compares only
// references, since a reference contains the image's digest.
func Load(ctx context.Context, nodes []*cluster.Node, wanted []Built) error {
	return progress.ForEach(ctx, nodes, func(ctx context.Context, node *cluster.Node) error {
		present, err := node.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "ls", "--quiet")
		if err != nil {
			return fmt.Errorf("list the images of %s: %w", node.Name(), err)
		}
		missing := missingImages(wanted, strings.Fields(present))
		if len(missing) == 0 {
			return nil
		}
		progress.Note(ctx, "%d on %s", len(missing), node.Name())
		packed := Archive(missing)
		defer packed.Close()
		return node.LoadImage(ctx, packed)
	})
}

// LoadIntoEngine loads the image into the Docker Engine under its reference.
func LoadIntoEngine(ctx context.Context, built Built) error {
	packed := Archive([]Built{built})
	defer packed.Close()
	if _, err := command.Run(ctx, exec.CommandContext(ctx, "docker", "load", "--quiet").SetStdin(packed)); err != nil {
		return fmt.Errorf("load image %s into the Docker Engine: %w", built.Ref, err)
	}
	return nil
}

// Archive returns a reader that packs the images while a caller reads. Archives of hundreds of
// megabytes, for several nodes, are therefore never in memory. Close stops the packing.
func Archive(built []Built) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(WriteArchive(writer, built...)) }()
	return reader
}

func missingImages(wanted []Built, present []string) []Built {
	return slices.DeleteFunc(slices.Clone(wanted), func(b Built) bool { return slices.Contains(present, b.Ref) })
}
