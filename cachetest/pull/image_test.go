package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

func randomImage(t *testing.T, layers int64) v1.Image {
	t.Helper()
	img, err := random.Image(1<<10, layers)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func parts(objects []Object) []Part {
	var all []Part
	for _, object := range objects {
		all = append(all, object.Part)
	}
	return all
}

func TestDescribe(t *testing.T) {
	img := randomImage(t, 2)
	objects, err := Describe(nil, img)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 4 || objects[0].Part != PartManifest || objects[1].Part != PartConfig || objects[3].Part != PartLayer {
		t.Fatalf("parts %v, want manifest, config and two layers", parts(objects))
	}
	for _, object := range objects {
		if object.Size <= 0 {
			t.Errorf("%s has the size %d", object.Part, object.Size)
		}
	}
	digest, _ := img.Digest()
	if got := (Image{Objects: objects}).Digest(); got != digest.String() {
		t.Errorf("digest %s, want that of the manifest, %s", got, digest)
	}
	// The first chain ID is the diff ID, the second the digest of both diff IDs.
	config, _ := img.ConfigFile()
	diffs := config.RootFS.DiffIDs
	sum := sha256.Sum256([]byte(diffs[0].String() + " " + diffs[1].String()))
	if got := objects[2].chainIDs; len(got) != 1 || got[0] != diffs[0].String() {
		t.Errorf("first snapshot %v, want %s", got, diffs[0])
	}
	if got := objects[3].chainIDs; len(got) != 1 || got[0] != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("second snapshot %v, want %x", got, sum)
	}
}

func TestDescribeIndex(t *testing.T) {
	img := randomImage(t, 1)
	index := v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: "1234"}, Size: 7}
	objects, err := Describe(&index, img)
	if err != nil {
		t.Fatal(err)
	}
	if objects[0].Part != PartIndex || objects[0].Size != 7 || (Image{Objects: objects}).Digest() != "sha256:1234" {
		t.Errorf("the first object is %+v, want the index", objects[0])
	}
	if objects[1].Part != PartManifest || len(objects) != 4 {
		t.Errorf("parts %v", parts(objects))
	}
}

func TestDescribeDuplicateLayer(t *testing.T) {
	layer, err := random.Layer(1<<10, "application/vnd.oci.image.layer.v1.tar+gzip")
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(randomImage(t, 1), layer, layer)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Describe(nil, img)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 4 || len(objects[3].chainIDs) != 2 {
		t.Fatalf("parts %v, want two layers, the second with two snapshots", parts(objects))
	}
	half := State{Snapshots: map[string]bool{objects[3].chainIDs[0]: true}}
	if half.holds(objects[3]) {
		t.Error("a layer that is unpacked at one of its two places counts as present")
	}
}
