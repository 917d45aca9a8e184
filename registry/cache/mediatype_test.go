package cache

import (
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const artifactType = "application/vnd.oci.artifact.manifest.v1+json"

// TestMediaType checks how media types are recognized, and that a manifest is stored only if the
// upstream names the same type: only then does the volume give the same answer.
func TestMediaType(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"image": {
			`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageManifest + `","config":{},"layers":[]}`, v1.MediaTypeImageManifest,
		},
		"image without its type":  {`{"schemaVersion":2,"config":{"digest":"a"},"layers":[{"digest":"b"}]}`, v1.MediaTypeImageManifest},
		"image without layers":    {`{"schemaVersion":2,"config":{},"layers":[]}`, v1.MediaTypeImageManifest},
		"index":                   {`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageIndex + `","manifests":[]}`, v1.MediaTypeImageIndex},
		"index without its type":  {`{"schemaVersion":2,"manifests":[{"digest":"a"}]}`, v1.MediaTypeImageIndex},
		"empty index":             {`{"schemaVersion":2,"manifests":[]}`, v1.MediaTypeImageIndex},
		"Docker image":            {`{"schemaVersion":2,"mediaType":"` + dockerManifest + `","config":{},"layers":[]}`, dockerManifest},
		"Docker list":             {`{"schemaVersion":2,"mediaType":"` + dockerList + `","manifests":[]}`, dockerList},
		"schema 1":                {`{"schemaVersion":1,"name":"a","fsLayers":[{"blobSum":"a"}],"history":[]}`, dockerSchema1},
		"schema 1, signed":        {`{"schemaVersion":1,"name":"a","fsLayers":[],"signatures":[{}]}`, dockerSigned},
		"artifact":                {`{"mediaType":"` + artifactType + `","artifactType":"a/b","blobs":[]}`, artifactType},
		"artifact in an image":    {`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageManifest + `","artifactType":"a/b"}`, v1.MediaTypeImageManifest},
		"error document":          {`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"unknown"}]}`, ""},
		"config":                  {`{"architecture":"amd64","config":{"Env":[]},"rootfs":{"type":"layers","diff_ids":[]}}`, ""},
		"image without config":    {`{"schemaVersion":2,"layers":[]}`, ""},
		"image, layers are null":  {`{"schemaVersion":2,"config":{},"layers":null}`, v1.MediaTypeImageManifest},
		"image with a config":     {`{"schemaVersion":2,"config":{}}`, v1.MediaTypeImageManifest},
		"image without version":   {`{"mediaType":"` + v1.MediaTypeImageManifest + `","config":{},"layers":[]}`, v1.MediaTypeImageManifest},
		"index of no version":     {`{"mediaType":"` + v1.MediaTypeImageIndex + `","manifests":[]}`, v1.MediaTypeImageIndex},
		"index without version":   {`{"manifests":[]}`, ""},
		"version only":            {`{"schemaVersion":2}`, ""},
		"schema 1 without layers": {`{"schemaVersion":1}`, ""},
		"type without version":    {`{"mediaType":"` + v1.MediaTypeImageManifest + `"}`, ""},
		"version 3":               {`{"schemaVersion":3,"mediaType":"` + v1.MediaTypeImageManifest + `"}`, ""},
		"wrong type":              {`{"schemaVersion":"2","manifests":[]}`, ""},
		"array":                   {`[]`, ""},
		"null":                    {`null`, ""},
		"HTML":                    {`<html></html>`, ""},
		"half":                    {`{"schemaVersion":2,"manifests":[`, ""},
		"more than one":           {`{"schemaVersion":2,"manifests":[]}{}`, ""},
		"empty":                   {``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := typeOf([]byte(test.content)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, called := range []string{
				v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, dockerManifest, dockerList, dockerSchema1, dockerSigned,
				artifactType, "", "application/json", "text/plain", "application/octet-stream",
			} {
				m := Manifest{MediaType: called, Content: []byte(test.content)}
				if want := test.want != "" && called == test.want; m.isStorable() != want {
					t.Errorf("with Content-Type %q it is stored: %t", called, !want)
				}
			}
		})
	}
}

// TestMediaTypeOfHostileManifest checks that the many values of a large manifest use no memory. If
// they were decoded, a manifest of 4 MiB would need 200 MiB, and many are read at once.
func TestMediaTypeOfHostileManifest(t *testing.T) {
	for _, field := range []string{"manifests", "layers", "config", "fsLayers", "signatures", "unknown"} {
		t.Run(field, func(t *testing.T) {
			values := "[" + strings.Repeat("{},", 100_000) + "{}]"
			if field == "config" {
				values = `{"a":` + values + `}`
			}
			content := []byte(`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageIndex + `","` + field + `":` + values + `}`)
			if n := testing.AllocsPerRun(1, func() {
				if typeOf(content) != v1.MediaTypeImageIndex {
					t.Error("not recognized as a manifest")
				}
			}); n > 1000 {
				t.Errorf("it takes %.0f allocations", n)
			}
		})
	}
}
