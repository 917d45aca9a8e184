package nodeimage

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// searchPath sets PATH in each image. kubeadm's manifests call programs without their folder.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// artifacts are the built parts: their paths on this machine by name.
type artifacts struct {
	programs map[string]string
	trees    map[string]string
}

// entries returns the files of the component's own layer.
func (c component) entries(built artifacts) ([]entry, error) {
	entries := []entry{folder("/tmp", 0o777|fs.ModeSticky)}
	for _, name := range c.programs {
		source, ok := built.programs[name]
		if !ok {
			return nil, fmt.Errorf("image %s: program %s was not built", c.name, name)
		}
		entries = append(entries, executable(path.Join(usrLocalBin, name), source))
	}
	return append(entries, c.extra...), nil
}

// config returns the config of the image.
func (c component) config() v1.Config {
	entrypoint := []string{"/bin/sh"}
	if len(c.programs) > 0 {
		entrypoint = []string{path.Join(usrLocalBin, c.programs[0])}
	}
	return v1.Config{Env: []string{searchPath}, Entrypoint: entrypoint}
}

// image returns the component's image. It writes the layers to the folder work.
func (c component) image(built artifacts, work string) (v1.Image, error) {
	entries, err := c.entries(built)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(work, c.name+".tar")
	if err := writeTreeFile(own, entries); err != nil {
		return nil, fmt.Errorf("image %s: %w", c.name, err)
	}
	archives := []string{own}
	if c.tree != nil {
		archives = []string{built.trees[c.tree.name], own}
	}
	var layers []v1.Layer
	for _, archive := range archives {
		layer, err := packedLayer(archive)
		if err != nil {
			return nil, fmt.Errorf("image %s: packing %s: %w", c.name, archive, err)
		}
		layers = append(layers, layer)
	}
	return imageOf(c.config(), types.OCIManifestSchema1, types.OCIConfigJSON, layers...)
}

// imageOf returns an image for this machine's architecture.
func imageOf(config v1.Config, manifest, configType types.MediaType, layers ...v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, manifest), configType)
	file, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	image, err := mutate.ConfigFile(base, file)
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layers...)
}
