// Command images builds the images of a release with ko, without Docker: for amd64 and arm64, as an
// OCI layout in bin/images, with SBOMs in bin/images/sbom. It runs in the root of the repository.
// One commit and one version of Go always give the same digests.
//
// It is a module of its own because ko's dependencies are not ours.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/ko/pkg/build"
)

const (
	module   = "github.com/gardener-extensions/registry-cache"
	commands = module + "/cmd/"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, ".", "bin/images", commands+"registry-cache", commands+"registry-cache-admission", commands+"registry-cache-extension")
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// run builds an image of each package of the module in dir, and replaces the layout in out. The
// annotation org.opencontainers.image.ref.name of each index is the last element of its package.
func run(ctx context.Context, dir, out string, packages ...string) error {
	for _, variable := range []string{"GOOS", "GOARCH", "GOARM", "GOARM64", "GOAMD64", "KOCACHE"} {
		if err := os.Unsetenv(variable); err != nil { // ko prefers them to the platform
			return err
		}
	}
	builder, err := newBuilder(ctx, dir, filepath.Join(out, "sbom"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove the previous layout: %w", err)
	}
	images, err := layout.Write(out, empty.Index)
	if err != nil {
		return fmt.Errorf("create the layout: %w", err)
	}
	for _, pkg := range packages {
		image, err := builder.Build(ctx, build.StrictScheme+pkg)
		if err != nil {
			return fmt.Errorf("build %s: %w", pkg, err)
		}
		index, ok := image.(v1.ImageIndex)
		if !ok {
			return fmt.Errorf("build %s: got %T, want an index", pkg, image)
		}
		if err := images.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": path.Base(pkg)})); err != nil {
			return fmt.Errorf("write the image of %s: %w", pkg, err)
		}
	}
	return nil
}

// newBuilder returns a builder whose flags are those of the testbed's images (kind/image).
func newBuilder(ctx context.Context, dir, sboms string) (build.Interface, error) {
	version, err := os.ReadFile(filepath.Join(dir, "VERSION"))
	if err != nil {
		return nil, err
	}
	git := exec.CommandContext(ctx, "git", "-C", dir, "log", "-1", "--format=%H %ct")
	commit, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("find the commit: %s: %w", git, err)
	}
	var revision string
	var seconds int64
	if _, err := fmt.Sscan(string(commit), &revision, &seconds); err != nil {
		return nil, fmt.Errorf("read the commit %q: %w", commit, err)
	}
	base, err := scratch("amd64", "arm64")
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: time.Unix(seconds, 0).UTC()} // a local time zone would change the digest
	return build.NewGo(ctx, dir,
		build.WithBaseImages(func(context.Context, string) (name.Reference, build.Result, error) {
			return name.MustParseReference("scratch"), base, nil
		}),
		build.WithPlatforms("linux/amd64", "linux/arm64"),
		build.WithTrimpath(true), build.WithDefaultFlags([]string{"-buildvcs=false"}), build.WithDefaultLdflags([]string{"-s", "-w"}),
		build.WithUser("65532:65532"), build.WithCreationTime(created), build.WithKoDataCreationTime(created),
		build.WithLabel("org.opencontainers.image.version", string(bytes.TrimSpace(version))),
		build.WithLabel("org.opencontainers.image.revision", revision),
		build.WithLabel("org.opencontainers.image.source", "https://"+module),
		build.WithLabel("org.opencontainers.image.licenses", "Apache-2.0"),
		build.WithSPDX(koVersion()), build.WithSBOMDir(sboms), build.WithJobs(1))
}

// scratch returns an index of images without layers: ko needs one for each architecture.
func scratch(architectures ...string) (v1.ImageIndex, error) {
	var index v1.ImageIndex = empty.Index
	for _, architecture := range architectures {
		image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
			OS: "linux", Architecture: architecture, RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{WorkingDir: "/"},
		})
		if err != nil {
			return nil, err
		}
		image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index, nil
}

// koVersion is the version that SBOMs name as their creator.
func koVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == "github.com/google/ko" {
				return dependency.Version
			}
		}
	}
	return "(unknown)"
}
