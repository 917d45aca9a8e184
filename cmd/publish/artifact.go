package main

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

// blob is content with its media type.
type blob struct {
	mediaType types.MediaType
	data      []byte
}

// descriptor describes the blob in a manifest.
func (b blob) descriptor() v1.Descriptor {
	sum := sha256.Sum256(b.data)
	return v1.Descriptor{
		MediaType: b.mediaType, Size: int64(len(b.data)), Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])},
	}
}

// artifact is a manifest with a config and one layer. It contains no time, so the same content
// gives the same digest.
type artifact struct{ config, layer, manifest blob }

// newArtifact returns an artifact of a type, which may be empty. If subject is not nil, registries
// list the artifact as a referrer of that manifest.
func newArtifact(kind string, config, layer blob, subject *v1.Descriptor) (artifact, error) {
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: kind,
		Config: config.descriptor(), Layers: []v1.Descriptor{layer.descriptor()}, Subject: subject,
	})
	if err != nil {
		return artifact{}, fmt.Errorf("encode the manifest: %w", err)
	}
	return artifact{config, layer, blob{types.OCIManifestSchema1, manifest}}, nil
}

// newChart returns a Helm chart as `helm push` uploads it. metadata is its Chart.yaml.
func newChart(metadata, archive []byte) (artifact, error) {
	config, err := yaml.YAMLToJSON(metadata)
	if err != nil {
		return artifact{}, fmt.Errorf("read Chart.yaml: %w", err)
	}
	return newArtifact("", blob{"application/vnd.cncf.helm.config.v1+json", config},
		blob{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive}, nil)
}

// Digest returns the digest of the manifest.
func (a artifact) Digest() (v1.Hash, error) { return a.manifest.descriptor().Digest, nil }

// MediaType returns the media type of the manifest.
//
//nolint:unparam // remote.Pusher finds this method by its signature.
func (a artifact) MediaType() (types.MediaType, error) { return a.manifest.mediaType, nil }

// RawManifest returns the manifest.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest.data, nil }

// push uploads the artifact without a tag. If the registry does not list referrers, push adds the
// artifact to the tag in which clients then look for those of the subject.
func (a artifact) push(ctx context.Context, pusher *remote.Pusher, repository name.Repository) error {
	for _, b := range []blob{a.config, a.layer} {
		if err := pusher.Upload(ctx, repository, static.NewLayer(b.data, b.mediaType)); err != nil {
			return fmt.Errorf("upload to %s: %w", repository, err)
		}
	}
	if err := pusher.Put(ctx, repository.Digest(a.manifest.descriptor().Digest.String()), a); err != nil {
		return fmt.Errorf("upload to %s: %w", repository, err)
	}
	return nil
}
