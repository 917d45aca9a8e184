package registry

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // for the stock registry
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestConformance runs the pull part of the conformance tests of the OCI distribution-spec, first
// for content that the cache must fetch, then for stored content.
func TestConformance(t *testing.T) {
	u := newTestUpstream(t, true)
	image := u.push(t, "image", 2, 1000)
	var blobs, manifests []string
	for blob := range image.content {
		blobs = append(blobs, blob.String())
	}
	blobs = append(blobs, u.pushBlob(t, nil).Digest.String())
	add := func(tag, kind string, manifest any) {
		content, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		u.send(t, http.MethodPut, "/v2/"+repositoryName+"/manifests/"+tag, kind, content)
		manifests = append(manifests, digest.FromBytes(content).String())
	}
	described := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: image.manifest, Size: 0}
	described.Size = int64(len(getFrom(t, http.MethodGet, newTestServer(t, u, t.TempDir()).manifest("image")).body))
	empty := v1.DescriptorEmptyJSON
	u.pushBlob(t, empty.Data)
	empty.Data = nil
	version := specs.Versioned{SchemaVersion: 2}
	add("index", v1.MediaTypeImageIndex, v1.Index{
		Versioned: version, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{described}})
	add("artifact", v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: version, MediaType: v1.MediaTypeImageManifest, ArtifactType: "application/vnd.example", Config: empty,
		Layers: []v1.Descriptor{empty}, Subject: &described})
	const dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	add("docker", dockerManifest, map[string]any{
		"schemaVersion": 2, "mediaType": dockerManifest, "layers": []any{}, "config": map[string]any{
			"mediaType": "application/vnd.docker.container.image.v1+json", "size": empty.Size, "digest": empty.Digest}})

	cache := newTestServer(t, u, t.TempDir())
	for _, state := range []string{"cold", "warm"} {
		conforms := func() error {
			command := exec.CommandContext(t.Context(), "go", "tool", "conformance")
			command.Env = append(os.Environ(), "OCI_RESULTS_DIR="+t.TempDir(),
				"OCI_REGISTRY="+strings.TrimPrefix(cache.URL, "http://"), "OCI_TLS=disabled", "OCI_REPO1="+repositoryName,
				"OCI_API_PUSH=false", "OCI_API_TAGS_LIST=false", "OCI_API_REFERRER=false",
				"OCI_API_BLOBS_DELETE=false", "OCI_API_MANIFESTS_DELETE=false", "OCI_API_TAGS_DELETE=false",
				"OCI_RO_DATA_TAGS=image index artifact docker", "OCI_RO_DATA_BLOBS="+strings.Join(blobs, " "),
				"OCI_RO_DATA_MANIFESTS="+strings.Join(manifests, " "))
			// The exit code is useless: with read-only data, the command panics after its report
			// (ReportResultsYAML).
			output, err := command.CombinedOutput()
			if !strings.Contains(string(output), "OCI Conformance Result: Pass") {
				return errors.Join(err, errors.New(string(output)))
			}
			return nil
		}
		err := conforms()
		for n := 0; n < 4 && err != nil; n++ { // on a busy machine, an upstream can be late
			if state == "cold" {
				cache = newTestServer(t, u, t.TempDir())
			}
			err = conforms()
		}
		if err != nil {
			t.Errorf("%s: %v", state, err)
		}
	}
}

// TestBase: the answer to /v2/ is identical to distribution's.
func TestBase(t *testing.T) {
	server := newTestServer(t, newTestUpstream(t, true), t.TempDir())
	stock := httptest.NewServer(handlers.NewApp(t.Context(), &configuration.Configuration{
		Storage: configuration.Storage{"inmemory": configuration.Parameters{}},
	}))
	t.Cleanup(stock.Close)
	got, want := getFrom(t, http.MethodGet, server.URL+"/v2/"), getFrom(t, http.MethodGet, stock.URL+"/v2/")
	got.header.Del("Date")
	want.header.Del("Date")
	if got.status != want.status || string(got.body) != string(want.body) || !reflect.DeepEqual(got.header, want.header) {
		t.Errorf("got %d %v %s\nwant %d %v %s", got.status, got.header, got.body, want.status, want.header, want.body)
	}
}
