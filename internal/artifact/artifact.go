// Package artifact pushes content that is no image, such as a Helm chart, to an OCI registry.
package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Content is a blob and its media type.
type Content struct {
	Type types.MediaType
	Data []byte
}

// Descriptor describes the content in a manifest.
func (c Content) Descriptor() v1.Descriptor {
	sum := sha256.Sum256(c.Data)
	return v1.Descriptor{
		MediaType: c.Type, Size: int64(len(c.Data)), Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])},
	}
}

// Artifact is a manifest with a config and one layer. It contains no time, so the same content
// gives the same digest.
type Artifact struct{ config, layer, manifest Content }

// New returns an artefact of a type, which may be empty. If subject is not nil, registries list the
// artefact as a referrer of that manifest.
func New(kind string, config, layer Content, subject *v1.Descriptor) (Artifact, error) {
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: kind,
		Config: config.Descriptor(), Layers: []v1.Descriptor{layer.Descriptor()}, Subject: subject,
	})
	if err != nil {
		return Artifact{}, fmt.Errorf("encode the manifest: %w", err)
	}
	return Artifact{config, layer, Content{types.OCIManifestSchema1, manifest}}, nil
}

// Chart returns a Helm chart as `helm push` uploads it. metadata is its Chart.yaml.
func Chart(metadata, archive []byte) (Artifact, error) {
	config, err := yaml.YAMLToJSON(metadata)
	if err != nil {
		return Artifact{}, fmt.Errorf("read Chart.yaml: %w", err)
	}
	return New("", Content{"application/vnd.cncf.helm.config.v1+json", config},
		Content{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive}, nil)
}

// Digest returns the digest of the manifest.
func (a Artifact) Digest() (v1.Hash, error) { return a.manifest.Descriptor().Digest, nil }

// MediaType returns the media type of the manifest.
func (a Artifact) MediaType() (types.MediaType, error) { return a.manifest.Type, nil }

// RawManifest returns the manifest.
func (a Artifact) RawManifest() ([]byte, error) { return a.manifest.Data, nil }

// Push uploads the artefact without a tag. If the registry does not list referrers, Push adds the
// artefact to the tag in which clients then look for those of the subject.
func (a Artifact) Push(ctx context.Context, pusher *remote.Pusher, repository name.Repository) error {
	for _, blob := range []Content{a.config, a.layer} {
		if err := pusher.Upload(ctx, repository, static.NewLayer(blob.Data, blob.Type)); err != nil {
			return fmt.Errorf("upload to %s: %w", repository, err)
		}
	}
	if err := pusher.Put(ctx, repository.Digest(a.manifest.Descriptor().Digest.String()), a); err != nil {
		return fmt.Errorf("upload to %s: %w", repository, err)
	}
	return nil
}
