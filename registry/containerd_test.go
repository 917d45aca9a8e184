package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// containerd returns containerd's client, which tries the mirrors and then the upstream.
func containerd(t *testing.T, upstream string, mirrors ...string) remotes.Resolver {
	t.Helper()
	hosts := containerdHosts(clientOf(t), upstream, mirrors...)
	return docker.NewResolver(docker.ResolverOptions{
		Hosts: func(string) ([]docker.RegistryHost, error) { return hosts, nil },
	})
}

func containerdHosts(client *http.Client, upstream string, mirrors ...string) (hosts []docker.RegistryHost) {
	for _, url := range append(mirrors, upstream) {
		hosts = append(hosts, docker.RegistryHost{
			Client: client, Scheme: "http", Host: strings.TrimPrefix(url, "http://"), Path: "/v2",
			Capabilities: docker.HostCapabilityPull | docker.HostCapabilityResolve, Header: http.Header{directHeader: {"1"}},
		})
	}
	return hosts
}

func nameOf(tag string) string { return "upstream.example/" + repositoryName + ":" + tag }

// pullBlob pulls a blob as containerd does, and checks its content.
func pullBlob(t *testing.T, blob v1.Descriptor, upstream string, mirrors ...string) error {
	t.Helper()
	fetcher, err := containerd(t, upstream, mirrors...).Fetcher(t.Context(), nameOf("v1"))
	if err != nil {
		return err
	}
	blob.MediaType = v1.MediaTypeImageLayer
	return download(t.Context(), fetcher, blob)
}

func download(ctx context.Context, from remotes.Fetcher, blob v1.Descriptor) error {
	content, err := from.Fetch(ctx, blob)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	digester := digest.SHA256.Digester()
	if n, err := io.Copy(digester.Hash(), content); err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	if got := digester.Digest(); got != blob.Digest {
		return fmt.Errorf("wrong content %s", got)
	}
	return nil
}

// pullAsANode pulls an image as containerd does: the tag, the manifest, and three layers at a time.
func (s *testServer) pullAsANode(t *testing.T, u *testUpstream, image testImage) {
	t.Helper()
	resolver := containerd(t, u.URL, s.URL)
	name, manifest, err := resolver.Resolve(t.Context(), nameOf(image.tag))
	if err != nil || manifest.Digest != image.manifest {
		t.Errorf("resolve %s: %s, %v", image.tag, manifest.Digest, err)
		return
	}
	fetcher, err := resolver.Fetcher(t.Context(), name)
	if err == nil {
		err = download(t.Context(), fetcher, manifest)
	}
	if err != nil {
		t.Errorf("manifest of %s: %v", image.tag, err)
		return
	}
	slots := make(chan struct{}, 3)
	var downloads sync.WaitGroup
	for blob, content := range image.content {
		downloads.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			layer := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: blob, Size: int64(len(content))}
			if err := download(t.Context(), fetcher, layer); err != nil {
				t.Errorf("layer %s: %v", blob, err)
			}
		})
	}
	downloads.Wait()
}
