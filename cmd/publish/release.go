package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/helmchart"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

// placeholder is the registry in charts and examples.
const placeholder = "registry.example.org/"

// release is what a run publishes. All digests are known before the first request.
type release struct {
	registry, alias   string
	version, revision string // of the images; the version begins with v
	created           time.Time
	items             []item            // in the order of their tags
	refs              map[string]string // for clusters, by path in the registry
	files             map[string]string
}

func newRelease(s settings) (*release, error) {
	if s.registry == "" || strings.Contains(s.registry+s.alias, "://") {
		return nil, program.Usage(errors.New("name the registry as host/path: make publish REGISTRY=registry.example.org/gardener"))
	}
	r := &release{registry: s.registry, alias: s.alias, refs: map[string]string{}, files: map[string]string{}}
	if r.alias == "" {
		r.alias = s.registry
	}
	if err := r.addImages(s.images); err != nil {
		return nil, err
	}
	image := func(name string) []string {
		return []string{"repository: " + placeholder + name, "repository: " + r.alias + "/" + name, `tag: ""`, "tag: " + r.tag(name)}
	}
	cache := r.refs["registry-cache"]
	for _, chart := range []struct {
		folder string
		values []string
	}{
		{"registry-cache-extension", append(image("registry-cache-extension"), "imageVectorOverwrite: {}",
			"imageVectorOverwrite:\n  images:\n  - name: registry-cache\n    ref: "+cache+"\n  - name: registry-cleaner\n    ref: "+cache)},
		{"registry-cache-admission/application", nil},
		{"registry-cache-admission/runtime", image("registry-cache-admission")},
	} {
		if err := r.addChart(filepath.Join(s.root, "charts", chart.folder), chart.values); err != nil {
			return nil, fmt.Errorf("chart %s: %w", chart.folder, err)
		}
	}
	if err := r.addObjects(); err != nil {
		return nil, err
	}
	return r, r.addDescriptor(filepath.Join(s.root, ".ocm", "base-component.yaml"))
}

// add adds content to the items and refs.
func (r *release) add(path, version string, content content, sboms ...artifact) error {
	digest, err := content.Digest()
	if err != nil {
		return err
	}
	tag, err := name.NewTag(r.registry+"/"+path+":"+version, name.StrictValidation)
	if err != nil {
		return program.Usage(fmt.Errorf("registry %s: %w", r.registry, err))
	}
	r.refs[path] = r.alias + "/" + path + ":" + version + "@" + digest.String()
	if _, err := name.NewDigest(r.refs[path], name.StrictValidation); err != nil {
		return program.Usage(fmt.Errorf("registry %s: %w", r.alias, err))
	}
	r.items = append(r.items, item{tag, content, sboms})
	return nil
}

// tag returns the tag and the digest of what was added: v0.1.0@sha256:...
func (r *release) tag(path string) string {
	return strings.TrimPrefix(r.refs[path], r.alias+"/"+path+":")
}

// addImages adds the images in the layout.
func (r *release) addImages(dir string) error {
	images, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return program.Environment(fmt.Errorf("read the images: %w; run: make images", err))
	}
	manifest, err := images.IndexManifest()
	if err != nil {
		return fmt.Errorf("read the images: %w", err)
	}
	for _, name := range []string{"registry-cache", "registry-cache-admission", "registry-cache-extension"} {
		i := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Annotations["org.opencontainers.image.ref.name"] == name })
		if i < 0 {
			return program.Environment(fmt.Errorf("%s contains no image %s; run: make images", dir, name))
		}
		image, err := images.ImageIndex(manifest.Manifests[i].Digest)
		if err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
		if err := r.addImage(name, image, filepath.Join(dir, "sbom", name)); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}

// addImage adds an image and its SBOMs, whose names begin with the path.
func (r *release) addImage(name string, image v1.ImageIndex, sbomPath string) error {
	manifest, err := image.IndexManifest()
	if err != nil {
		return err
	}
	whole, err := partial.Descriptor(image)
	if err != nil {
		return err
	}
	index, err := sbom(sbomPath+"-index", *whole)
	if err != nil {
		return err
	}
	sboms := []artifact{index}
	for _, part := range manifest.Manifests {
		platform, err := sbom(sbomPath+"-"+part.Platform.OS+"-"+part.Platform.Architecture, part)
		if err != nil {
			return err
		}
		sboms = append(sboms, platform)
	}
	platform, err := image.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	config, err := platform.ConfigFile()
	if err != nil {
		return err
	}
	labels := config.Config.Labels
	r.version, r.revision, r.created = labels["org.opencontainers.image.version"], labels["org.opencontainers.image.revision"], config.Created.UTC()
	return r.add(name, r.version, image, sboms...)
}

// sbom returns the SBOM of the subject. Its file is path without the extension.
func sbom(path string, subject v1.Descriptor) (artifact, error) {
	content, err := os.ReadFile(path + ".spdx.json")
	if err != nil {
		return artifact{}, program.Environment(fmt.Errorf("%w; run: make images", err))
	}
	const kind = "application/spdx+json"
	return newArtifact(kind, blob{mediaType: "application/vnd.oci.empty.v1+json", data: []byte("{}")},
		blob{mediaType: kind, data: content}, &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest})
}

// addChart adds the Helm chart in dir with other default values: pairs of a text that values.yaml
// contains once and of its replacement.
func (r *release) addChart(dir string, values []string) error {
	files := os.DirFS(dir)
	metadata, err := fs.ReadFile(files, "Chart.yaml")
	if err != nil {
		return err
	}
	var chart struct{ Name, Version string }
	if err := yaml.Unmarshal(metadata, &chart); err != nil {
		return fmt.Errorf("read Chart.yaml: %w", err)
	}
	if "v"+chart.Version != r.version {
		return program.Environment(fmt.Errorf("its version is %s, but that of the images is %s; run: make images", chart.Version, r.version))
	}
	defaults, err := fs.ReadFile(files, "values.yaml")
	if err != nil {
		return err
	}
	replaced, err := replace(string(defaults), values...)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	archive, err := helmchart.Archive(patched{files, replaced}, chart.Name)
	if err != nil {
		return err
	}
	content, err := newChart(metadata, archive)
	if err != nil {
		return err
	}
	return r.add("charts/"+chart.Name, chart.Version, content)
}

// patched is a chart with another values.yaml.
type patched struct {
	fs.FS
	values string
}

func (p patched) ReadFile(name string) ([]byte, error) {
	if name == "values.yaml" {
		return []byte(p.values), nil
	}
	return fs.ReadFile(p.FS, name)
}

// replace replaces texts: pairs of an old one, which must occur once, and a new one.
func replace(text string, pairs ...string) (string, error) {
	for pair := range slices.Chunk(pairs, 2) {
		if n := strings.Count(text, pair[0]); n != 1 {
			return "", fmt.Errorf("%q occurs %d times, want once", pair[0], n)
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	return text, nil
}
