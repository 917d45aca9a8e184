package kind

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// binaries lists everything that is built from the main module: what ships, and the parts of Gardener that run for
// real. One call of image.Build makes them all, so that what they share is compiled once.
func binaries() []image.Binary {
	return []image.Binary{
		{Name: ImageCache, Package: ModulePath + "/cmd/registry-cache"},
		{Name: ImageExtension, Package: ModulePath + "/cmd/registry-cache-extension"},
		{Name: ImageOSExtension, Package: gardener.OSExtensionPackage},
		{Name: ImageResourceManager, Package: gardener.ResourceManagerPackage, Ldflags: gardener.Ldflags},
		{Name: ImageNodeAgent, Package: gardener.NodeAgentPackage, Ldflags: gardener.Ldflags},
		upstream.Binary(),
		image.Pause(),
	}
}

// images are the built images by name.
type images map[string]image.Built

// binaryDirectory keeps the binaries of a checkout outside of the testbed's state, so that they outlive Down: go build
// links a program again only if it changed.
func binaryDirectory(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	checkout := sha256.Sum256([]byte(root))
	return filepath.Join(cache, "registry-cache-testbed", "bin", hex.EncodeToString(checkout[:6])), nil
}

// buildImages builds the binaries that every testbed needs, and their images.
func (t *Testbed) buildImages(ctx context.Context) (images, error) {
	if err := t.notePlanted(); err != nil {
		return nil, err
	}
	built, err := t.build(ctx, binaries()...)
	if err != nil {
		return nil, err
	}
	all := images{}
	for _, b := range built {
		all[b.Name] = b
	}
	return all, nil
}

// build builds binaries and makes one image of each. Unchanged packages come from Go's build cache.
func (t *Testbed) build(ctx context.Context, binaries ...image.Binary) ([]image.Built, error) {
	directory, err := binaryDirectory(t.root)
	if err != nil {
		return nil, err
	}
	unlock, err := lock.Wait(ctx, directory+".lock", buildLockTimeout)
	if err != nil {
		return nil, fmt.Errorf("binaries of %s: %w", t.root, err)
	}
	defer unlock()
	if binaries, err = t.planted(directory, binaries); err != nil {
		return nil, err
	}
	return image.Build(ctx, directory, binaries...)
}

// pick returns the named images.
func (all images) pick(names ...string) []image.Built {
	picked := make([]image.Built, 0, len(names))
	for _, name := range names {
		picked = append(picked, all[name])
	}
	return picked
}

// loadImages puts images into the containerd of the nodes. References are content-addressed, so what a node has under
// one is what it would get.
func loadImages(ctx context.Context, nodes []*cluster.Node, wanted []image.Built) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error {
			present, err := node.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "ls", "--quiet")
			if err != nil {
				return fmt.Errorf("list the images of %s: %w", node.Name(), err)
			}
			missing := missingImages(wanted, strings.Fields(present))
			if len(missing) == 0 {
				return nil
			}
			progress.Note(ctx, "%d on %s", len(missing), node.Name())
			packed := archive(missing)
			defer packed.Close()
			return node.LoadImage(ctx, packed)
		})
	}
	return group.Wait()
}

// archive packs images while it is read, since several nodes read hundreds of megabytes at once. Closing the reader early
// ends the packing.
func archive(built []image.Built) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(image.WriteArchive(writer, built...)) }()
	return reader
}

// missingImages are those of wanted whose reference is not among the present ones.
func missingImages(wanted []image.Built, present []string) []image.Built {
	return slices.DeleteFunc(slices.Clone(wanted), func(b image.Built) bool { return slices.Contains(present, b.Ref) })
}
