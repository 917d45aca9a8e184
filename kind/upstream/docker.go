package upstream

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/gardener-extensions/registry-cache/kind/image"
)

// setUp configures testcontainers-go: no reaper container, because its image cannot be pulled on a
// machine without a registry (containers are found and removed by label instead), and no log lines.
// testcontainers-go reads the variable only once.
var setUp = sync.OnceFunc(func() {
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	log.SetDefault(log.NewNoopLogger())
})

// connect returns a client of the engine that testcontainers-go uses.
func connect() (client.APIClient, error) {
	setUp()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("connect to the Docker Engine: %w", err)
	}
	return provider.Client(), nil
}

// loading prevents upstreams that start at the same time from loading their image twice.
var loading sync.Mutex

// ensureImage loads the image unless the engine has it, and then removes its older versions.
func ensureImage(ctx context.Context, docker client.APIClient, built image.Built) error {
	loading.Lock()
	defer loading.Unlock()
	_, err := docker.ImageInspect(ctx, built.Ref)
	if err == nil {
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return fmt.Errorf("look for image %s: %w", built.Ref, err)
	}
	archive, writer := io.Pipe()
	defer func() { _ = archive.Close() }()
	go func() { writer.CloseWithError(image.WriteArchive(writer, built)) }()
	loaded, err := docker.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return fmt.Errorf("load image %s: %w", built.Ref, err)
	}
	defer loaded.Close()
	// The engine answers 200 and reports failures in the stream. The inspection detects them.
	output, err := io.ReadAll(io.LimitReader(loaded, 1<<16))
	if err != nil {
		return fmt.Errorf("load image %s: %w", built.Ref, err)
	}
	if _, err := docker.ImageInspect(ctx, built.Ref); err != nil {
		return fmt.Errorf("load image %s: %w; output of the engine: %s", built.Ref, err, output)
	}
	removeOldImages(ctx, docker, built)
	return nil
}

// removeOldImages is best effort: images in use, for example by another testbed, stay.
func removeOldImages(ctx context.Context, docker client.APIClient, built image.Built) {
	filter := make(client.Filters).Add("reference", image.Registry+"/"+built.Name)
	images, err := docker.ImageList(ctx, client.ImageListOptions{Filters: filter})
	if err != nil {
		return
	}
	for _, found := range images.Items {
		for _, ref := range found.RepoTags {
			if ref != built.Ref {
				_, _ = docker.ImageRemove(ctx, ref, client.ImageRemoveOptions{})
			}
		}
	}
}
