package kind

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/lock"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// binaries lists everything that is built from the main module: what ships, and the parts of Gardener that run for
// real. One call of image.Build makes them all, so that what they share is compiled once.
func Binaries() []image.Binary {
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

// binaryDirectory keeps the binaries of a checkout outside of the testbed's state, so that they outlive Down: go build
// links a program again only if it changed.
func BinaryDirectory(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	checkout := sha256.Sum256([]byte(root))
	return filepath.Join(cache, "registry-cache-testbed", "bin", hex.EncodeToString(checkout[:6])), nil
}

// build builds binaries and makes one image of each. Unchanged packages come from Go's build cache.
func (t *Testbed) Build(ctx context.Context, binaries ...image.Binary) ([]image.Built, error) {
	directory, err := BinaryDirectory(t.Root)
	if err != nil {
		return nil, err
	}
	unlock, err := lock.Wait(ctx, directory+".lock", BuildLockTimeout)
	if err != nil {
		return nil, fmt.Errorf("binaries of %s: %w", t.Root, err)
	}
	defer unlock()
	if binaries, err = t.planted(directory, binaries); err != nil {
		return nil, err
	}
	return image.Build(ctx, directory, binaries...)
}
