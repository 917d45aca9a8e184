package registry

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/distribution/distribution/v3/health"
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
		t.Run(state, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "go", "tool", "conformance")
			command.Env = append(os.Environ(), "OCI_RESULTS_DIR="+t.TempDir(),
				"OCI_REGISTRY="+strings.TrimPrefix(cache.URL, "http://"), "OCI_TLS=disabled", "OCI_REPO1="+repositoryName,
				"OCI_API_PUSH=false", "OCI_API_TAGS_LIST=false", "OCI_API_REFERRER=false",
				"OCI_API_BLOBS_DELETE=false", "OCI_API_MANIFESTS_DELETE=false", "OCI_API_TAGS_DELETE=false",
				"OCI_RO_DATA_TAGS=image index artifact docker", "OCI_RO_DATA_BLOBS="+strings.Join(blobs, " "),
				"OCI_RO_DATA_MANIFESTS="+strings.Join(manifests, " "))
			// The exit code says nothing: with read-only data, the command ends with a panic after its
			// report (ReportResultsYAML).
			output, err := command.CombinedOutput()
			if !strings.Contains(string(output), "OCI Conformance Result: Pass") {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// TestProbe: the answer to a probe is distribution's own, header by header, and only if the cache
// can serve.
func TestProbe(t *testing.T) {
	checks := health.NewStatusUpdater()
	health.Register(t.Name(), checks)
	server := newTestServer(t, newTestUpstream(t, true), t.TempDir())
	const ours, distributions = "/v2/", "/v2/?n=1"
	for _, test := range []struct {
		err    error
		status int
	}{{nil, http.StatusOK}, {errors.New("input/output error"), http.StatusServiceUnavailable}, {nil, http.StatusOK}} {
		checks.Update(test.err)
		got, want := getFrom(t, http.MethodGet, server.URL+ours), getFrom(t, http.MethodGet, server.URL+distributions)
		got.header.Del("Date")
		want.header.Del("Date")
		if got.status != test.status || want.status != test.status {
			t.Errorf("with the health check's error %v a probe is answered %d, by distribution %d", test.err, got.status, want.status)
		}
		if string(got.body) != string(want.body) || !reflect.DeepEqual(got.header, want.header) {
			t.Errorf("got %v %s\nwant %v %s", got.header, got.body, want.header, want.body)
		}
	}
}
