package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const pkg = "example.test/sample/cmd/sample"

// sample writes a module with one command, as a git repository whose commit is always the same.
func sample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"VERSION": "v1.2.3\n", "go.mod": "module example.test/sample\n\ngo 1.26\n", "cmd/sample/main.go": "package main\n\nfunc main() {}\n",
	} {
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "a"}} {
		command := exec.CommandContext(t.Context(), "git", arguments...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a",
			"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, output)
		}
	}
	return dir
}

// buildSample builds the sample, whatever GOARCH and the time zone are. It returns the index of the
// layout, which contains the digests of the images, and the SBOMs.
func buildSample(t *testing.T, dir, out, zone string) []byte {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	local := time.Local
	time.Local = location
	defer func() { time.Local = local }()
	t.Setenv("GOARCH", "s390x")
	if err := run(t.Context(), dir, out, pkg); err != nil {
		t.Fatal(err)
	}
	var built []byte
	for _, file := range []string{"index.json", "sbom/sample-index.spdx.json", "sbom/sample-linux-amd64.spdx.json", "sbom/sample-linux-arm64.spdx.json"} {
		content, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Fatal(err)
		}
		built = append(built, content...)
	}
	return built
}

// TestReproducible: the same commit gives the same digests and SBOMs in another folder and time
// zone. A second run replaces the layout.
func TestReproducible(t *testing.T) {
	out := filepath.Join(t.TempDir(), "images")
	dir := sample(t)
	first := buildSample(t, dir, out, "UTC")
	if again := buildSample(t, dir, out, "UTC"); !bytes.Equal(again, first) {
		t.Errorf("the second run gives\n%s\nthe first\n%s", again, first)
	}
	if other := buildSample(t, sample(t), filepath.Join(t.TempDir(), "images"), "America/New_York"); !bytes.Equal(other, first) {
		t.Errorf("in another folder and time zone\n%s\nwant\n%s", other, first)
	}
}

// TestImage: the image is an OCI index of both platforms. The program is what `go build` makes with
// the testbed's flags, so the testbed tests what is published.
func TestImage(t *testing.T) {
	out, dir := filepath.Join(t.TempDir(), "images"), sample(t)
	buildSample(t, dir, out, "UTC")
	images, err := layout.ImageIndexFromPath(out)
	if err != nil {
		t.Fatal(err)
	}
	list, err := images.IndexManifest()
	if err != nil || len(list.Manifests) != 1 || list.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "sample" || list.Manifests[0].MediaType != types.OCIImageIndex {
		t.Fatalf("the layout has %+v, want one index called sample: %v", list, err)
	}
	index, err := images.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, part := range parts.Manifests {
		platforms = append(platforms, part.Platform.String())
		image, err := index.Image(part.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, part.Platform.Architecture)
		binary := filepath.Join(t.TempDir(), "sample")
		command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, pkg)
		command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+part.Platform.Architecture)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		if want, err := os.ReadFile(binary); err != nil || !bytes.Equal(program(t, image), want) {
			t.Errorf("the program of %s is not what go build makes: %v", part.Platform, err)
		}
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("platforms %v, want %v", platforms, want)
	}
}

func checkImage(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil || manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || manifest.Layers[0].MediaType != types.OCILayer {
		t.Errorf("not an OCI image: %+v, %v", manifest, err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	if file.Architecture != architecture || config.User != "65532:65532" || config.WorkingDir != "/" || !slices.Equal(config.Entrypoint, []string{"/ko-app/sample"}) {
		t.Errorf("config %+v for %s", config, file.Architecture)
	}
	if config.Labels["org.opencontainers.image.version"] != "v1.2.3" || len(config.Labels["org.opencontainers.image.revision"]) != 40 || file.Created.Unix() != 1700000000 {
		t.Errorf("labels %v, created %v", config.Labels, file.Created)
	}
}

// program returns the file /ko-app/sample.
func program(t *testing.T, image v1.Image) []byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[len(layers)-1].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == "/ko-app/sample" {
			file, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			return file
		}
	}
}

// TestSBOM: both platforms and the index have an SBOM, which names ko's version. That of a platform
// names the module.
func TestSBOM(t *testing.T) {
	out := filepath.Join(t.TempDir(), "images")
	buildSample(t, sample(t), out, "UTC")
	for _, part := range []string{"linux-amd64", "linux-arm64", "index"} {
		content, err := os.ReadFile(filepath.Join(out, "sbom", "sample-"+part+".spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var sbom struct {
			SPDXVersion  string `json:"spdxVersion"`
			CreationInfo struct {
				Creators []string `json:"creators"`
			} `json:"creationInfo"`
			Packages []struct {
				Name string `json:"name"`
			} `json:"packages"`
		}
		if err := json.Unmarshal(content, &sbom); err != nil {
			t.Fatal(err)
		}
		if sbom.SPDXVersion != "SPDX-2.3" || !strings.Contains(strings.Join(sbom.CreationInfo.Creators, " "), "ko v") {
			t.Errorf("%s: version %s by %v", part, sbom.SPDXVersion, sbom.CreationInfo.Creators)
		}
		if part != "index" && !strings.Contains(string(content), "example.test/sample") {
			t.Errorf("%s: no package for the module: %+v", part, sbom.Packages)
		}
	}
}
