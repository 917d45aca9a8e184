package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/utils/gardener/operator"
	"github.com/gardener/gardener/pkg/utils/imagevector"
	"github.com/gardener/gardener/pkg/utils/oci"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/charts"
)

// TestImages: both platforms of each image are published unchanged, and each has its SBOM as a
// referrer.
func TestImages(t *testing.T) {
	registry := newTestRegistry(t)
	s := newSettings(t, registry.host+"/a")
	s.mustPublish(t)
	images, err := layout.ImageIndexFromPath(s.images)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := images.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range manifest.Manifests {
		image := want.Annotations["org.opencontainers.image.ref.name"]
		index, err := remote.Index(reference(t, s.registry+"/"+image+":"+versionOf(t)))
		if err != nil {
			t.Fatal(err)
		}
		parts, err := index.IndexManifest()
		if digest, _ := index.Digest(); err != nil || digest != want.Digest || len(parts.Manifests) != 2 {
			t.Errorf("%s is %s with %d images, want %s with 2: %v", image, digest, len(parts.Manifests), want.Digest, err)
		}
		subjects := map[string]v1.Hash{"index": want.Digest}
		for _, part := range parts.Manifests {
			subjects["linux-"+part.Platform.Architecture] = part.Digest
			if _, err := remote.Image(reference(t, s.registry+"/"+image+"@"+part.Digest.String())); err != nil {
				t.Error(err)
			}
		}
		for part, subject := range subjects {
			if got, want := readSBOM(t, s.registry+"/"+image, subject), part+" of "+image; !strings.Contains(got, want) {
				t.Errorf("the SBOM of %s is %s, want that of the %s", image, got, want)
			}
		}
	}
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(text, name.StrictValidation)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// readSBOM returns the only referrer of the subject.
func readSBOM(t *testing.T, repository string, subject v1.Hash) string {
	t.Helper()
	digest, err := name.NewDigest(repository + "@" + subject.String())
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := referrers.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].ArtifactType != "application/spdx+json" {
		t.Fatalf("referrers of %s: %+v, %v", digest, manifest, err)
	}
	return string(layer(t, repository+"@"+manifest.Manifests[0].Digest.String()))
}

// layer returns the first layer of a manifest.
func layer(t *testing.T, ref string) []byte {
	t.Helper()
	image, err := remote.Image(reference(t, ref))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestObjects: Gardener's code pulls the charts that the written objects refer to. Without values,
// they deploy the published images by digest. Both ways to install create the same registration.
func TestObjects(t *testing.T) {
	registry := newTestRegistry(t)
	s := newSettings(t, registry.host+"/a")
	out := s.mustPublish(t)
	files := readFolder(t, s.out)
	if want := files[gardenFile] + "---\n" + files[operatorFile]; out != want {
		t.Errorf("printed:\n%s\nwant:\n%s", out, want)
	}
	for file, text := range files {
		if strings.Contains(text, placeholder) {
			t.Errorf("%s contains the placeholder %s:\n%s", file, placeholder, text)
		}
	}

	documents := strings.Split(files[gardenFile], "---\n")
	deployment, registration := decode[gardencorev1.ControllerDeployment](t, documents[0]), decode[gardencorev1beta1.ControllerRegistration](t, documents[1])
	extension := decode[operatorv1alpha1.Extension](t, files[operatorFile])
	got, other := operator.ControllerRegistrationForExtension(extension)
	if !apiequality.Semantic.DeepEqual(got.Spec.Resources, registration.Spec.Resources) {
		t.Errorf("resources = %+v, want those of the ControllerRegistration: %+v", got.Spec.Resources, registration.Spec.Resources)
	}
	if *other.Helm.OCIRepository.Ref != *deployment.Helm.OCIRepository.Ref {
		t.Errorf("gardener-operator installs %s, want %s", *other.Helm.OCIRepository.Ref, *deployment.Helm.OCIRepository.Ref)
	}

	image := func(name string) string { return s.registry + "/" + name + ":" + versionOf(t) + "@sha256:" }
	admission := extension.Spec.Deployment.AdmissionDeployment
	for _, test := range []struct {
		chart  *gardencorev1.OCIRepository
		images map[string]int
	}{
		{deployment.Helm.OCIRepository, map[string]int{image("registry-cache-extension"): 1, image("registry-cache"): 2}},
		{admission.RuntimeCluster.Helm.OCIRepository, map[string]int{image("registry-cache-admission"): 1}},
		{admission.VirtualCluster.Helm.OCIRepository, nil},
	} {
		archive, err := oci.NewHelmRegistry(nil).Pull(t.Context(), test.chart)
		if err != nil {
			t.Fatal(err)
		}
		renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.2"})
		chart, err := renderer.RenderArchive(archive, "registry-cache", "extension-registry-cache", map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		for image, want := range test.images {
			if n := strings.Count(string(chart.Manifest()), image); n != want {
				t.Errorf("%s deploys %s %d times, want %d", *test.chart.Ref, image, n, want)
			}
		}
		if strings.Contains(string(chart.Manifest()), placeholder) {
			t.Errorf("%s deploys an image of %s", *test.chart.Ref, placeholder)
		}
	}
}

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return object
}

// TestAlias: clusters get the other name of the registry.
func TestAlias(t *testing.T) {
	registry := newTestRegistry(t)
	s := newSettings(t, registry.host+"/a")
	s.alias = "mirror.test/b"
	s.mustPublish(t)
	for file, text := range readFolder(t, s.out) {
		if !strings.Contains(text, "mirror.test/b/") || strings.Contains(text, registry.host) {
			t.Errorf("%s refers to another registry than mirror.test/b:\n%s", file, text)
		}
	}
}

// TestImageVector: the image vector replaces both names of the built-in one.
func TestImageVector(t *testing.T) {
	registry := newTestRegistry(t)
	s := newSettings(t, registry.host+"/a")
	s.mustPublish(t)
	t.Setenv(imagevector.OverrideEnv, filepath.Join(s.out, vectorFile))
	images, err := charts.LoadImages()
	want := s.registry + "/registry-cache:" + versionOf(t) + "@sha256:"
	if err != nil || !strings.HasPrefix(images.RegistryCache, want) || images.RegistryCleaner != images.RegistryCache || images.RegistryCacheArchitectures != nil {
		t.Errorf("images %+v, want %s for both and all architectures: %v", images, want, err)
	}
}

// descriptor has the fields of a component descriptor that this repository uses.
type descriptor struct {
	Meta struct {
		SchemaVersion string `json:"schemaVersion"`
	} `json:"meta"`
	Component struct {
		Name                string              `json:"name"`
		Version             string              `json:"version"`
		CreationTime        string              `json:"creationTime"`
		Provider            string              `json:"provider"`
		Labels              []any               `json:"labels"`
		RepositoryContexts  []map[string]string `json:"repositoryContexts"`
		Sources             []resource          `json:"sources"`
		ComponentReferences []any               `json:"componentReferences"`
		Resources           []resource          `json:"resources"`
	} `json:"component"`
}

type resource struct {
	Name          string            `json:"name"`
	Version       string            `json:"version"`
	Type          string            `json:"type"`
	Relation      string            `json:"relation"`
	ExtraIdentity map[string]string `json:"extraIdentity"`
	Labels        []struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	} `json:"labels"`
	Access map[string]string `json:"access"`
}

// TestDescriptor: the component descriptor names every image of the image vector and every chart by
// a reference that exists, each once. The registry has the same descriptor as an artifact.
func TestDescriptor(t *testing.T) {
	registry := newTestRegistry(t)
	s := newSettings(t, registry.host+"/a")
	s.mustPublish(t)
	text := readFolder(t, s.out)[descriptorFile]
	component := decode[descriptor](t, text).Component
	if component.Version != versionOf(t) || component.Sources[0].Access["commit"] != strings.Repeat("a", 40) || component.CreationTime != "2023-11-14T22:13:20Z" {
		t.Errorf("version, commit or time are not those of the images: %+v", component)
	}
	var names []string
	for _, resource := range component.Resources {
		names = append(names, resource.ExtraIdentity["type"]+" "+resource.Name)
		if _, err := remote.Head(reference(t, resource.Access["imageReference"])); err != nil || resource.Relation != "local" || resource.Version != component.Version {
			t.Errorf("resource %+v: %v", resource, err)
		}
		for _, label := range resource.Labels {
			if label.Name == "imagevector.gardener.cloud/name" && label.Value != resource.Name {
				t.Errorf("resource %s has the label of %s", resource.Name, label.Value)
			}
		}
	}
	want := []string{
		" registry-cache", " registry-cleaner", " registry-cache-admission", " registry-cache-extension",
		"helmChart registry-cache-admission-application", "helmChart registry-cache-admission-runtime", "helmChart registry-cache-extension",
	}
	if !slices.Equal(names, want) {
		t.Errorf("resources %q, want %q", names, want)
	}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ref := s.registry + "/component-descriptors/" + component.Name + ":" + component.Version
	if pushed := layer(t, ref); string(pushed) != string(encoded) {
		t.Errorf("the registry has\n%s\nwant\n%s", pushed, encoded)
	}
	image, err := remote.Image(reference(t, ref))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ ComponentDescriptorLayer v1.Descriptor }
	manifest, err := image.Manifest()
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	if err != nil || !reflect.DeepEqual(config.ComponentDescriptorLayer, manifest.Layers[0]) {
		t.Errorf("the config names layer %+v, want %+v: %v", config.ComponentDescriptorLayer, manifest.Layers[0], err)
	}
}
