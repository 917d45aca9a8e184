package pull

import (
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of PushOptions. The content of an image is made in memory, so there is one for all layers together.
const (
	MaxLayers     = 100
	MaxLayerBytes = 1 << 30
	MaxImageBytes = 2 << 30
)

// PushOptions say what image to make and where to put it.
type PushOptions struct {
	// Upstream is the host of an upstream, or the first label of it ("alpha").
	Upstream string
	// Name is the repository, with a tag or without ("shop/web:v1"); without one the tag is latest. If it is empty, the
	// repository is a random one that no other image is in.
	Name string
	// Base is the reference of an image of the same upstream, all layers of which the new one has, too; empty for none.
	Base string
	// Layers is how many layers of random content the image has beside that of its program, 1 to MaxLayers, and Size how
	// large each of them is, a quantity like 2Mi or 500k of at most MaxLayerBytes. All of them have at most MaxImageBytes.
	Layers int
	Size   string
}

// Target is where a push goes, and what is pushed.
type Target struct {
	Host, Repository, Tag string
	Layers                int
	LayerBytes            int64
	// BaseRepository and BaseIdentifier are those of the image whose layers the new one has, too; empty for none.
	BaseRepository, BaseIdentifier string
}

// Validate checks what can be known without a testbed. The error is an InvalidError.
func (o PushOptions) Validate() error {
	if o.Upstream == "" {
		return Invalid("upstream", "is empty")
	}
	if o.Name != "" {
		if _, err := name.NewTag("upstream.test/" + o.Name); err != nil {
			return Invalid("name", "%v", err)
		}
	}
	if _, err := name.ParseReference(o.Base); o.Base != "" && err != nil {
		return Invalid("base", "%v", err)
	}
	_, err := o.layerBytes()
	return err
}

// Target validates the options, also against the hosts of the testbed's upstreams. random is the repository for those without
// a name. The error is an InvalidError.
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
		return nil, Invalid("upstream", "%q is none of this testbed; there are %s", o.Upstream, strings.Join(hosts, ", "))
	}
	repository := o.Name
	if repository == "" {
		repository = random
	}
	tag, err := name.NewTag(hosts[host] + "/" + repository)
	if err != nil {
		return nil, Invalid("name", "%v", err)
	}
	target := &Target{Host: hosts[host], Repository: tag.RepositoryStr(), Tag: tag.TagStr(), Layers: o.Layers, LayerBytes: bytes}
	if o.Base == "" {
		return target, nil
	}
	base, err := name.ParseReference(o.Base)
	if err != nil {
		return nil, Invalid("base", "%v", err)
	}
	if base.Context().RegistryStr() != target.Host {
		return nil, Invalid("base", "%s is of %s, and the image goes to %s", o.Base, base.Context().RegistryStr(), target.Host)
	}
	target.BaseRepository, target.BaseIdentifier = base.Context().RepositoryStr(), base.Identifier()
	return target, nil
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

// Pushed is what `testbed push` tells.
type Pushed struct {
	// Reference is what a pod on a node names the image by.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	// Bytes is the size of all Objects.
	Bytes   int64    `json:"bytes"`
	Objects []Object `json:"objects"`
}
