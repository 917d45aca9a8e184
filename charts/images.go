package charts

import (
	_ "embed"
	"fmt"

	"github.com/gardener/gardener/pkg/utils/imagevector"
)

const (
	// ImageRegistryCache is the name of the image that serves a cache.
	ImageRegistryCache = "registry-cache"
	// ImageRegistryCleaner is the name of the image that cleans nodes.
	ImageRegistryCleaner = "registry-cleaner"
)

//go:embed images.yaml
var images []byte

// Images are the references of the images that the extension deploys into shoots.
type Images struct {
	RegistryCache   string
	RegistryCleaner string
}

// LoadImages returns the images of images.yaml. If the environment variable IMAGEVECTOR_OVERWRITE
// is set, the images in the file that it names replace them
// (https://github.com/gardener/gardener/blob/master/docs/deployment/image_vector.md).
func LoadImages() (Images, error) {
	vector, err := imagevector.Read(images)
	if err != nil {
		return Images{}, fmt.Errorf("reading the embedded image vector: %w", err)
	}
	vector, err = imagevector.WithEnvOverride(vector, imagevector.OverrideEnv)
	if err != nil {
		return Images{}, fmt.Errorf("reading the image vector that %s names: %w", imagevector.OverrideEnv, err)
	}
	found, err := imagevector.FindImages(vector, []string{ImageRegistryCache, ImageRegistryCleaner})
	if err != nil {
		return Images{}, fmt.Errorf("looking up the images: %w", err)
	}
	return Images{
		RegistryCache:   found[ImageRegistryCache].String(),
		RegistryCleaner: found[ImageRegistryCleaner].String(),
	}, nil
}
