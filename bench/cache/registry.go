package cache

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/bench"
)

const repository = "library/app"

// blob is content of the upstream, which every registry serves below the same path.
type blob struct {
	Path string
	Size int64
}

// registry is a distribution registry that stores in a folder.
type registry struct {
	URL     string
	process *bench.Process
}

// startRegistry starts the stock registry on a new volume in the folder. The caller must stop it.
func startRegistry(ctx context.Context, program, folder string) (*registry, error) {
	ports, err := bench.FreePorts(2)
	if err != nil {
		return nil, err
	}
	volume := filepath.Join(folder, "upstream")
	text := fmt.Sprintf(`version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %q}, cache: {blobdescriptor: inmemory}}
http: {addr: "127.0.0.1:%s", debug: {addr: "127.0.0.1:%s"}}
`, volume, ports[0], ports[1])
	if err := os.RemoveAll(volume); err != nil {
		return nil, fmt.Errorf("remove the upstream of an earlier run: %w", err)
	}
	process, err := startConfigured(ctx, text, bench.Program{
		Name: "upstream", Path: program, Arguments: []string{"serve"}, Folder: folder,
		Ready: "http://127.0.0.1:" + ports[1] + "/debug/health",
	})
	if err != nil {
		return nil, err
	}
	return &registry{URL: "http://127.0.0.1:" + ports[0], process: process}, nil
}

// Stop ends the registry.
func (r *registry) Stop() error { return r.process.Stop() }

// Push stores a blob of random bytes. It is then in the page cache, for all contenders alike.
func (r *registry) Push(ctx context.Context, size int64) (blob, error) {
	content := make([]byte, size)
	_, _ = rand.Read(content) // never fails
	layer := static.NewLayer(content, types.DockerLayer)
	digest, err := layer.Digest()
	if err != nil {
		return blob{}, fmt.Errorf("digest of a blob: %w", err)
	}
	to, err := name.NewRepository(r.host()+"/"+repository, name.Insecure)
	if err == nil {
		err = remote.WriteLayer(to, layer, remote.WithContext(ctx))
	}
	if err != nil {
		return blob{}, fmt.Errorf("push a blob of %d bytes to the upstream: %w", size, err)
	}
	return blob{Path: "/v2/" + repository + "/blobs/" + digest.String(), Size: size}, nil
}

// PushImage stores a small image and returns its manifest by tag.
func (r *registry) PushImage(ctx context.Context, tag string) (blob, error) {
	var image v1.Image
	reference, err := name.ParseReference(r.host()+"/"+repository+":"+tag, name.Insecure)
	if err == nil {
		image, err = random.Image(1<<10, 1)
	}
	if err == nil {
		err = remote.Write(reference, image, remote.WithContext(ctx))
	}
	if err != nil {
		return blob{}, fmt.Errorf("push an image to the upstream: %w", err)
	}
	size, err := image.Size()
	if err != nil {
		return blob{}, fmt.Errorf("size of a manifest: %w", err)
	}
	return blob{Path: "/v2/" + repository + "/manifests/" + tag, Size: size}, nil
}

func (r *registry) host() string { return strings.TrimPrefix(r.URL, "http://") }
