package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener/gardener/pkg/utils"

	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// buildLockTimeout bounds how long Build waits for another process's Build of the checkout.
const buildLockTimeout = 15 * time.Minute

// Binaries returns what Up passes to Build. Building all together compiles shared packages once.
func (t *Testbed) Binaries() []image.Binary {
	var all []image.Binary
	for _, built := range t.Extension.Images {
		all = append(all, built.Binary)
	}
	if t.Config.Garden {
		for _, name := range gardener.ControlPlanePrograms {
			all = append(all, image.Binary{Name: name, Package: gardener.CommandPackages + name, Ldflags: gardener.Ldflags})
		}
		all = append(all, image.Binary{Name: ProgramTestbed, Package: ModulePath + "/cmd/testbed", Ldflags: gardener.Ldflags})
	}
	return append(all, []image.Binary{
		{Name: ImageOSExtension, Package: gardener.OSExtensionPackage},
		{Name: ImageResourceManager, Package: gardener.ResourceManagerPackage, Ldflags: gardener.Ldflags},
		{Name: ImageNodeAgent, Package: gardener.NodeAgentPackage, Ldflags: gardener.Ldflags},
		{Name: ImageNodeExecAgent, Package: ModulePath + "/kind/nodeexec/nodeexec-agent"},
		upstream.Binary(),
		image.Pause(),
	}...)
}

// BinaryDirectory returns the folder with the binaries of the checkout at root. Down keeps the
// folder, so that the next Build links only programs that have changed.
func BinaryDirectory(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "registry-cache-testbed", "bin", utils.ComputeSHA256Hex([]byte(root))[:12]), nil
}

// BuildImages calls Build and sets Images to the result.
func (t *Testbed) BuildImages(ctx context.Context, binaries ...image.Binary) error {
	built, err := t.Build(ctx, binaries...)
	if err != nil {
		return err
	}
	t.Images = image.Set{}
	for _, b := range built {
		t.Images[b.Name] = b
	}
	return nil
}

// Build builds binaries and packs each into an image.
func (t *Testbed) Build(ctx context.Context, binaries ...image.Binary) ([]image.Built, error) {
	directory, err := BinaryDirectory(t.Root)
	if err != nil {
		return nil, err
	}
	unlock, err := file.Lock(ctx, directory+".lock", buildLockTimeout)
	if err != nil {
		return nil, fmt.Errorf("lock the binaries of %s: %w", t.Root, err)
	}
	defer unlock()
	return image.Build(ctx, directory, binaries...)
}

// ModulePath is the import path of the repository's root.
const ModulePath = "github.com/gardener-extensions/registry-cache"

// Names of the images that every testbed builds.
const (
	ImageOSExtension     = "gardener-extension-os-kind"
	ImageResourceManager = "gardener-resource-manager"
	ImageNodeAgent       = "gardener-node-agent"
	ImageNodeExecAgent   = "nodeexec-agent"
)

// ProgramTestbed is the name of the program testbed, which is built for its command gardenlet.
const ProgramTestbed = "testbed"
