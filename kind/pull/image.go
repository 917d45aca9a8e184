package pull

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
)

// Part says what an object is in an image.
type Part string

// The parts of an image.
const (
	PartIndex    Part = "index"
	PartManifest Part = "manifest"
	PartConfig   Part = "config"
	PartLayer    Part = "layer"
	// PartBlob is a config or a layer of an image that the upstream did not describe, PartUnknown anything of one.
	PartBlob    Part = "blob"
	PartUnknown Part = "content"
)

// Image is what is pulled.
type Image struct {
	// Reference is the whole name, with the host and a tag or a digest.
	Reference string
	// Host, Repository and Identifier are its parts; Identifier is the tag or the digest.
	Host, Repository, Identifier string
	// Objects are the index, if there is one, the manifest, the config and the layers, each once. They are empty when the
	// upstream did not describe the image, for the reason in Problem.
	Objects []Object
	Problem string
}

// Object is one thing that a pull may have to fetch.
type Object struct {
	Digest string `json:"digest"`
	Part   Part   `json:"part"`
	// Size is what the manifest says, in bytes; for an image that the upstream did not describe, what it sent.
	Size int64 `json:"size"`
	// chainIDs are the names of the snapshots that a layer is unpacked to; several if an image has the layer more than once.
	chainIDs []string
}

// Digest is that of the index, or of the manifest where there is no index; empty for an image without Objects.
func (i Image) Digest() string {
	if len(i.Objects) == 0 {
		return ""
	}
	return i.Objects[0].Digest
}

// Describe lists the objects of an image. The index is that which the image was found in, or nil. It reads the config, since
// the names of snapshots follow from it.
func Describe(index *v1.Descriptor, img v1.Image) ([]Object, error) {
	hash, err := img.Digest()
	if err != nil {
		return nil, fmt.Errorf("digest of the manifest: %w", err)
	}
	size, err := img.Size()
	if err != nil {
		return nil, fmt.Errorf("size of the manifest: %w", err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the config: %w", err)
	}
	all := list{}
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

// list has each digest once.
type list []Object

func (l *list) add(part Part, descriptor v1.Descriptor, chains ...string) {
	for i, known := range *l {
		if known.Digest == descriptor.Digest.String() {
			(*l)[i].chainIDs = append(known.chainIDs, chains...)
			return
		}
	}
	*l = append(*l, Object{Digest: descriptor.Digest.String(), Part: part, Size: descriptor.Size, chainIDs: chains})
}

// chainIDs names the snapshots as containerd does: each stands for a layer on top of all those before.
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
