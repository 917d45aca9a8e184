package pull

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
)

// Part is the role of an object in an image.
type Part string

// The parts of an image.
const (
	PartIndex    Part = "index"
	PartManifest Part = "manifest"
	PartConfig   Part = "config"
	PartLayer    Part = "layer"
	// PartBlob is a config or a layer. PartUnknown may be any part. Only images with a Problem have
	// objects of these two kinds.
	PartBlob    Part = "blob"
	PartUnknown Part = "content"
)

// Image is the image of a pull.
type Image struct {
	// Host, Repository and Identifier (the tag or digest) are the parts of Reference.
	Reference, Host, Repository, Identifier string
	// Objects are the index (if there is one), the manifest, the config and the layers, without
	// duplicates. If the manifest or the config cannot be read, there are no Objects, and Problem is
	// the reason.
	Objects []Object
	Problem string
}

// Object is a manifest or blob of an image.
type Object struct {
	Digest string `json:"digest"`
	Part   Part   `json:"part"`
	// Size is the size in bytes according to the manifest. For an image with a Problem, it is the
	// number of bytes that the upstream sent.
	Size int64 `json:"size"`
	// chainIDs are the names of a layer's snapshots: one for each place of the layer in the image.
	chainIDs []string
}

// Digest returns the digest of the index, or of the manifest if there is no index. It returns "" if
// there are no Objects.
func (i Image) Digest() string {
	if len(i.Objects) == 0 {
		return ""
	}
	return i.Objects[0].Digest
}

// Describe returns the objects of an image; index may be nil. chainIDs come from the image's
// config.
func Describe(index *v1.Descriptor, img v1.Image) ([]Object, error) {
	hash, err := img.Digest()
	if err != nil {
		return nil, fmt.Errorf("compute the digest of the manifest: %w", err)
	}
	size, err := img.Size()
	if err != nil {
		return nil, fmt.Errorf("compute the size of the manifest: %w", err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the config: %w", err)
	}
	var all objectList
	if index != nil {
		all.add(PartIndex, *index)
	}
	all.add(PartManifest, v1.Descriptor{Digest: hash, Size: size})
	all.add(PartConfig, manifest.Config)
	chains := chainIDs(config.RootFS.DiffIDs)
	for i, layer := range manifest.Layers {
		if i < len(chains) {
			all.add(PartLayer, layer, chains[i])
		} else {
			all.add(PartLayer, layer)
		}
	}
	return all, nil
}

type objectList []Object

func (l *objectList) add(part Part, descriptor v1.Descriptor, chains ...string) {
	for i, known := range *l {
		if known.Digest == descriptor.Digest.String() {
			(*l)[i].chainIDs = append(known.chainIDs, chains...)
			return
		}
	}
	*l = append(*l, Object{Digest: descriptor.Digest.String(), Part: part, Size: descriptor.Size, chainIDs: chains})
}

// chainIDs returns containerd's names of the snapshots. Each snapshot is a layer on top of all
// layers below it.
func chainIDs(diffIDs []v1.Hash) []string {
	digests := make([]digest.Digest, 0, len(diffIDs))
	for _, id := range diffIDs {
		digests = append(digests, digest.Digest(id.String()))
	}
	names := make([]string, 0, len(digests))
	for _, id := range identity.ChainIDs(digests) {
		names = append(names, id.String())
	}
	return names
}
