package pull

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

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
	// Layers is the number of random layers, 1 to MaxLayers, in addition to the layer with the
	// program. Size is the size of each random layer, for example 2Mi, and at most MaxLayerBytes.
	// The sum of all sizes is at most MaxImageBytes.
	Layers int
	Size   string
}

// Validate checks the options without a testbed. Its error is an *InvalidError.
func (o PushOptions) Validate() error {
	_, err := o.layerBytes()
	return err
}

// target returns the host of the upstream and the size of a layer, or an *InvalidError.
func (o PushOptions) target(hosts []string) (host string, bytes int64, err error) {
	if bytes, err = o.layerBytes(); err != nil {
		return "", 0, err
	}
	for _, host := range hosts {
		if short, _, _ := strings.Cut(host, "."); o.Upstream == host || o.Upstream == short {
			return host, bytes, nil
		}
	}
	return "", 0, Invalid("upstream", "%q is not an upstream of this testbed, use one of %s", o.Upstream, strings.Join(hosts, ", "))
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
// its reference. For invalid options it returns an *InvalidError and pushes nothing. The testbed
// must be attached.
func Push(ctx context.Context, t *kind.Testbed, options PushOptions) (reference string, err error) {
	host, bytes, err := options.target(t.Upstreams.Hosts())
	if err != nil {
		return "", err
	}
	registry, repository := t.Upstream(host), "testbed/"+strings.ToLower(rand.Text()[:10])
	reference = registry.Reference(repository, "latest")
	return reference, t.Recorder.Step(ctx, "push to "+reference, func(ctx context.Context) error {
		pause, err := t.Build(ctx, image.Pause())
		if err != nil {
			return fmt.Errorf("build the program of the image: %w", err)
		}
		img, err := image.Random(pause[0], options.Layers, bytes)
		if err == nil {
			_, err = registry.Push(ctx, repository, "latest", img)
		}
		return err
	})
}
