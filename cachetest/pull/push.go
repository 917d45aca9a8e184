package pull

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// Limits of PushOptions. MaxImageBytes limits the sum of all layers, since Push builds the image in
// memory.
const (
	MaxLayers     = 100
	MaxLayerBytes = 1 << 30
	MaxImageBytes = 2 << 30
)

// PushOptions are the options of a push.
type PushOptions struct {
	Upstream string // the host of an upstream, or its first label ("alpha")
	// Name is the repository with an optional tag. The default is tag latest of a new repository.
	Name string
	// Layers is the number of random layers, 1 to MaxLayers, in addition to the layer with the
	// program. Size is the size of each random layer, for example 2Mi, and at most MaxLayerBytes.
	// The sum of all sizes is at most MaxImageBytes.
	Layers int
	Size   string
}

// Target has the parsed options of a push.
type Target struct {
	Host, Repository, Tag string
	Layers                int
	LayerBytes            int64
}

// Validate checks the options without a testbed. It returns an *InvalidError.
func (o PushOptions) Validate() error {
	if o.Upstream == "" {
		return Invalid("upstream", "required")
	}
	if o.Name != "" {
		if _, err := name.NewTag("upstream.test/" + o.Name); err != nil {
			return Invalid("name", "%v", err)
		}
	}
	_, err := o.layerBytes()
	return err
}

// Target validates the options against the upstreams' hosts; random replaces an empty Name.
func (o PushOptions) Target(hosts []string, random string) (*Target, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	bytes, err := o.layerBytes()
	if err != nil {
		return nil, err
	}
	host := slices.IndexFunc(hosts, func(host string) bool {
		return host == o.Upstream || strings.HasPrefix(host, o.Upstream+".")
	})
	if host < 0 {
		return nil, Invalid("upstream", "%q is not an upstream of this testbed, use one of %s", o.Upstream, strings.Join(hosts, ", "))
	}
	tag, err := name.NewTag(hosts[host] + "/" + cmp.Or(o.Name, random))
	if err != nil {
		return nil, Invalid("name", "%v", err)
	}
	return &Target{Host: hosts[host], Repository: tag.RepositoryStr(), Tag: tag.TagStr(), Layers: o.Layers, LayerBytes: bytes}, nil
}

func (o PushOptions) layerBytes() (int64, error) {
	if o.Layers < 1 || o.Layers > MaxLayers {
		return 0, Invalid("layers", "%d is not between 1 and %d", o.Layers, MaxLayers)
	}
	quantity, err := resource.ParseQuantity(o.Size)
	if err != nil {
		return 0, Invalid("size", "%q: %v", o.Size, err)
	}
	bytes := quantity.Value()
	switch {
	case bytes < 1 || bytes > MaxLayerBytes:
		return 0, Invalid("size", "%s is not between 1 and %s", o.Size, size(MaxLayerBytes))
	case int64(o.Layers)*bytes > MaxImageBytes:
		return 0, Invalid("size", "%d layers of %s are more than %s", o.Layers, o.Size, size(MaxImageBytes))
	}
	return bytes, nil
}

// Push builds an image of random content that a pod can run, pushes it to an upstream, and returns
// its reference. Invalid options are an *InvalidError, and nothing is pushed. The testbed must be
// attached.
func Push(ctx context.Context, t *kind.Testbed, options PushOptions) (reference string, err error) {
	target, err := options.Target(t.Upstreams.Hosts(), "testbed/"+strings.ToLower(rand.Text()[:10]))
	if err != nil {
		return "", err
	}
	registry := t.Upstream(target.Host)
	reference = registry.Reference(target.Repository, target.Tag)
	return reference, t.Recorder.Step(ctx, "push to "+reference, func(ctx context.Context) error {
		pause, err := t.Build(ctx, image.Pause())
		if err != nil {
			return fmt.Errorf("build the program of the image: %w", err)
		}
		img, err := image.Random(pause[0], target.Layers, target.LayerBytes)
		if err == nil {
			_, err = registry.Push(ctx, target.Repository, target.Tag, img)
		}
		return err
	})
}
