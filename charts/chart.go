package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"os"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils/imagevector"
)

const extensionChart = "registry-cache-extension"

//go:embed all:registry-cache-extension
var files embed.FS

// Extension returns the Helm chart that installs the extension on a seed.
func Extension() fs.FS {
	chart, err := fs.Sub(files, extensionChart)
	if err != nil {
		panic(fmt.Sprintf("the embedded chart has no valid name: %v", err))
	}
	return chart
}

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
	RegistryCache string
	// RegistryCacheArchitectures are the architectures on which RegistryCache runs. nil means all.
	RegistryCacheArchitectures []string
	RegistryCleaner            string
}

// LoadImages returns the images of images.yaml. If the environment variable IMAGEVECTOR_OVERWRITE
// is set, it is the path of a file whose images take precedence
// (https://github.com/gardener/gardener/blob/master/docs/deployment/image_vector.md). Its CA
// bundle is not used: only gardenlet's image vector brings CAs to nodes.
func LoadImages() (Images, error) {
	vector, _, err := imagevector.Read(images)
	if err != nil {
		return Images{}, fmt.Errorf("read the embedded image vector: %w", err)
	}
	if file := os.Getenv(imagevector.OverrideEnv); file != "" {
		overwrite, _, err := imagevector.ReadFile(file)
		if err != nil {
			return Images{}, fmt.Errorf("read the image vector that %s names: %w", imagevector.OverrideEnv, err)
		}
		vector = replace(vector, overwrite)
	}
	cache, architectures, err := find(vector, ImageRegistryCache)
	if err != nil {
		return Images{}, err
	}
	cleaner, _, err := find(vector, ImageRegistryCleaner)
	if err != nil {
		return Images{}, err
	}
	return Images{RegistryCache: cache, RegistryCacheArchitectures: architectures, RegistryCleaner: cleaner}, nil
}

// replace merges the vectors: an overwrite replaces all images of its name. MergeImageVectors alone
// keeps images for other architectures, and prefers a built-in image for one architecture to an
// overwrite that names none.
func replace(builtIn, overwrite imagevector.ImageVector) imagevector.ImageVector {
	for _, source := range overwrite {
		for _, image := range builtIn {
			if image.Name == source.Name {
				image.Architectures = source.Architectures
			}
		}
	}
	return imagevector.MergeImageVectors(builtIn, overwrite)
}

// find returns the image and its architectures. nil means all architectures that Gardener knows. If
// the vector contains a different image for each architecture, find uses the first one, because all
// replicas of a cache run the same image.
func find(vector imagevector.ImageVector, name string) (ref string, architectures []string, err error) {
	for _, architecture := range v1beta1constants.ValidArchitectures {
		image, err := vector.FindImage(name, imagevector.Architecture(architecture))
		if err != nil || ref != "" && image.String() != ref {
			continue
		}
		ref = image.String()
		architectures = append(architectures, architecture)
	}
	switch len(architectures) {
	case 0:
		return "", nil, fmt.Errorf("the image vector contains no image %s for any of the architectures %v", name, v1beta1constants.ValidArchitectures)
	case len(v1beta1constants.ValidArchitectures):
		return ref, nil, nil
	}
	return ref, architectures, nil
}
