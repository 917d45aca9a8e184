package upstream

import (
	"context"
	"io"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

// serving returns a Registry whose server runs in this process.
func serving(t *testing.T) *Registry {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	handler, err := server.NewHandler(ctx, t.TempDir(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	running := httptest.NewServer(handler)
	t.Cleanup(running.Close)
	address, err := url.Parse(running.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(address.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return &Registry{instance: instance{host: "alpha.test", ports: map[uint16]uint16{httpPort: uint16(port)}, log: &follower{}}}
}

func TestDescribe(t *testing.T) {
	registry := serving(t)
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := registry.Push(t.Context(), "shop/web", "v1", img)
	if err != nil {
		t.Fatal(err)
	}
	for _, identifier := range []string{"v1", digest.String()} {
		err := registry.Describe(t.Context(), "shop/web", identifier, func(index *v1.Descriptor, img v1.Image) error {
			if found, err := img.Digest(); err != nil || found != digest || index != nil {
				t.Errorf("%s: found %s, %v, index %v; want %s", identifier, found, err, index, digest)
			}
			_, err := img.ConfigFile()
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", identifier, err)
		}
	}
	err = registry.Describe(t.Context(), "shop/web", "v2", func(*v1.Descriptor, v1.Image) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "shop/web:v2 in alpha.test") {
		t.Errorf("error %v for a tag that is not there", err)
	}
}

func TestDescribeFromAnIndex(t *testing.T) {
	registry := serving(t)
	want, other := randomFor(t, "amd64"), randomFor(t, "arm64")
	index := mutate.AppendManifests(empty.Index, other, want)
	ref, err := registry.local("shop/web", "v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	err = registry.describe(t.Context(), "shop/web", "v1", "amd64", func(found *v1.Descriptor, img v1.Image) error {
		digest, _ := img.Digest()
		wanted, _ := want.Add.(v1.Image).Digest()
		indexed, _ := index.Digest()
		if digest != wanted || found == nil || found.Digest != indexed {
			t.Errorf("found %s in %v, want %s in %s", digest, found, wanted, indexed)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = registry.describe(t.Context(), "shop/web", "v1", "riscv64", func(*v1.Descriptor, v1.Image) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("error %v for an architecture that is not there", err)
	}
}

func randomFor(t *testing.T, architecture string) mutate.IndexAddendum {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	platform := &v1.Platform{OS: "linux", Architecture: architecture}
	return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}}
}
