package nodeimage

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// nodeConfig returns the config of kind's base image: the entrypoint starts systemd, the variable
// `container` tells systemd where it runs, and the stop signal is systemd's shutdown signal.
func nodeConfig() v1.Config {
	return v1.Config{
		Env:        []string{searchPath, "container=docker"},
		Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		StopSignal: "SIGRTMIN+3",
	}
}

// kindBase returns the files of kind's base image, including the effects of its Dockerfile's RUN
// lines, and the sandbox image that its containerd configuration names.
func kindBase(kindDir string) (entries []entry, sandbox string, err error) {
	files, err := baseFiles(os.DirFS(filepath.Join(kindDir, kindFiles)))
	if err != nil {
		return nil, "", err
	}
	config, err := content(files, containerdConfigFile)
	if err != nil {
		return nil, "", err
	}
	if sandbox, err = sandboxImage(config); err != nil {
		return nil, "", err
	}
	if config, err = containerdConfig(config); err != nil {
		return nil, "", err
	}
	links, err := enable(files)
	if err != nil {
		return nil, "", err
	}
	files = append(append(files, links...), settings()...)
	return append(files, text(containerdConfigFile, config)), sandbox, nil
}

// nodePrograms returns the programs in the file system of the node.
func nodePrograms(built artifacts) []entry {
	var entries []entry
	for _, c := range compilations() {
		for _, p := range c.programs {
			if p.dir != "" {
				entries = append(entries, executable(path.Join(p.dir, p.title()), built.programs[p.title()]))
			}
		}
	}
	return entries
}

// generated returns the base spec of containers, which ctr generates, and the manifest of the
// StorageClass, from the module folder of local-path-provisioner.
func generated(ctx context.Context, built artifacts, localPathDir string) ([]entry, error) {
	output, err := command.Output(ctx, built.programs["ctr"], "oci", "spec")
	if err != nil {
		return nil, err
	}
	spec, err := baseSpec([]byte(output))
	if err != nil {
		return nil, err
	}
	upstream, err := os.ReadFile(filepath.Join(localPathDir, storageDeployFile))
	if err != nil {
		return nil, err
	}
	manifest, err := storageManifest(upstream)
	if err != nil {
		return nil, err
	}
	return []entry{text("/etc/containerd/cri-base.json", spec), text(storageManifestFile, manifest)}, nil
}

// nodeImage returns the image with the archives as layers, the least frequently changed one first.
func nodeImage(archives ...string) (v1.Image, error) {
	var layers []v1.Layer
	for _, archive := range archives {
		layer, err := newPlainLayer(archive)
		if err != nil {
			return nil, fmt.Errorf("reading the layer %s: %w", archive, err)
		}
		layers = append(layers, layer)
	}
	return imageOf(nodeConfig(), types.DockerManifestSchema2, types.DockerConfigJSON, layers...)
}
