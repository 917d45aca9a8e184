package upstream

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// describeTimeout bounds the requests of Describe.
const describeTimeout = 10 * time.Second

// Describe looks up an image by tag or digest and passes it to read. From an index it selects the
// Linux image for this machine's architecture, which the nodes use. The image reads lazily, which
// works until read returns; the limit is 10 s in total. Requests go through a port on localhost; in
// the access log they are of AskerHarness.
func (r *Registry) Describe(ctx context.Context, repository, identifier string, read Reader) error {
	return r.describe(ctx, repository, identifier, runtime.GOARCH, read)
}

// Reader receives an image and the index that it was found in, or nil.
type Reader func(index *v1.Descriptor, img v1.Image) error

func (r *Registry) describe(ctx context.Context, repository, identifier, architecture string, read Reader) error {
	ctx, cancel := progress.Within(ctx, describeTimeout, "no answer")
	defer cancel()
	ref, err := r.local(repository, identifier)
	if err != nil {
		return fmt.Errorf("look up an image of %s: %w", r.host, err)
	}
	what := fmt.Sprintf("%s in %s", strings.TrimPrefix(ref.Name(), ref.Context().RegistryStr()+"/"), r.host)
	platform := v1.Platform{OS: "linux", Architecture: architecture}
	found, err := remote.Get(ref, append(r.access(ctx), remote.WithPlatform(platform))...)
	if err != nil {
		return fmt.Errorf("look up %s: %w", what, err)
	}
	img, err := found.Image()
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	var index *v1.Descriptor
	if found.MediaType.IsIndex() {
		index = &found.Descriptor
	}
	return read(index, img)
}

// local returns the reference of an image, by tag or digest, for requests from this machine.
func (r *Registry) local(repository, identifier string) (name.Reference, error) {
	separator := ":"
	if strings.Contains(identifier, ":") {
		separator = "@"
	}
	return name.ParseReference(r.localAddress(httpPort)+"/"+repository+separator+identifier, name.Insecure, name.StrictValidation)
}
