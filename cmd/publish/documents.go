package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/examples"
)

// Names of the written files.
const (
	gardenFile     = "garden.yaml"
	operatorFile   = "operator-extension.yaml"
	vectorFile     = "image-vector.yaml"
	descriptorFile = "component-descriptor.yaml"
)

const repository = "github.com/gardener-extensions/registry-cache"

// addObjects adds the objects that install the release, and the image vector.
func (r *release) addObjects() error {
	deployment, err := r.example("controller-deployment.yaml", "registry-cache-extension")
	if err != nil {
		return err
	}
	registration, err := r.example("controller-registration.yaml")
	if err != nil {
		return err
	}
	r.files[gardenFile] = deployment + "---\n" + registration
	r.files[operatorFile], err = r.example("operator-extension.yaml",
		"registry-cache-extension", "registry-cache-admission-runtime", "registry-cache-admission-application")
	if err != nil {
		return err
	}
	vector := "images:\n"
	for _, name := range []string{"registry-cache", "registry-cleaner"} {
		vector += fmt.Sprintf("- name: %[1]s\n  sourceRepository: %[2]s\n  repository: %[3]s/registry-cache\n  tag: %[4]s\n  resourceId:\n    name: %[1]s\n",
			name, repository, r.alias, r.tag("registry-cache"))
	}
	r.files[vectorFile] = vector
	return nil
}

// example returns an example without its first comment, with references of the published charts.
func (r *release) example(file string, charts ...string) (string, error) {
	content, err := examples.Files.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the example: %w", err)
	}
	var pairs []string
	for _, chart := range charts {
		version, _, _ := strings.Cut(r.tag("charts/"+chart), "@")
		pairs = append(pairs, placeholder+"charts/"+chart+":"+version+"\n", r.refs["charts/"+chart]+"\n")
	}
	text, err := replace(string(content), pairs...)
	if err != nil {
		return "", fmt.Errorf("example %s: %w", file, err)
	}
	return text[strings.Index(text, "apiVersion:"):], nil
}

// addDescriptor adds the component descriptor that landscapes read, with the attributes in the file
// base. It has two resources for the image of registry-cache, because a resource can replace only
// one name of an image vector.
func (r *release) addDescriptor(base string) error {
	content, err := os.ReadFile(base)
	if err != nil {
		return fmt.Errorf("read the component: %w", err)
	}
	component := map[string]any{}
	if err := yaml.UnmarshalStrict(content, &component); err != nil {
		return fmt.Errorf("read the component in %s: %w", base, err)
	}
	source, ok := component["main-source"].(map[string]any)
	if !ok {
		return fmt.Errorf("the component in %s has no main-source", base)
	}
	delete(component, "main-source")
	source["name"], source["type"], source["version"] = "main-source", "git", r.version
	source["access"] = map[string]any{"type": "github", "repoUrl": repository, "ref": "refs/tags/" + r.version, "commit": r.revision}
	component["version"], component["creationTime"] = r.version, r.created.Format(time.RFC3339)
	component["repositoryContexts"] = []any{map[string]any{"type": "ociRegistry", "baseUrl": r.alias}}
	component["sources"], component["componentReferences"] = []any{source}, []any{}
	component["resources"] = r.resources()
	text, err := yaml.Marshal(map[string]any{"meta": map[string]any{"schemaVersion": "v2"}, "component": component})
	if err != nil {
		return fmt.Errorf("encode the component descriptor: %w", err)
	}
	r.files[descriptorFile] = string(text)
	encoded, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("encode the component descriptor: %w", err)
	}
	const kind = "application/vnd.ocm.software.component-descriptor.v2"
	layer := blob{mediaType: kind + "+json", data: encoded}
	config, err := json.Marshal(map[string]any{"componentDescriptorLayer": layer.descriptor()})
	if err != nil {
		return fmt.Errorf("encode the component descriptor: %w", err)
	}
	pushed, err := newArtifact(kind, blob{mediaType: "application/vnd.ocm.software.component.config.v1+json", data: config}, layer, nil)
	if err != nil {
		return err
	}
	return r.add(path.Join("component-descriptors", repository), r.version, pushed)
}

// resources returns the images and charts for the component descriptor.
func (r *release) resources() []any {
	resource := func(name, kind, ref string) map[string]any {
		return map[string]any{
			"name": name, "version": r.version, "type": kind, "relation": "local",
			"access": map[string]any{"type": "ociRegistry", "imageReference": ref},
		}
	}
	var resources []any
	for _, name := range []string{"registry-cache", "registry-cleaner"} {
		image := resource(name, "ociImage", r.refs["registry-cache"])
		image["labels"] = []any{
			map[string]any{"name": "imagevector.gardener.cloud/name", "value": name},
			map[string]any{"name": "imagevector.gardener.cloud/repository", "value": r.alias + "/registry-cache"},
			map[string]any{"name": "imagevector.gardener.cloud/source-repository", "value": repository},
		}
		resources = append(resources, image)
	}
	for _, name := range []string{"registry-cache-admission", "registry-cache-extension"} {
		resources = append(resources, resource(name, "ociImage", r.refs[name]))
	}
	for _, name := range []string{"registry-cache-admission-application", "registry-cache-admission-runtime", "registry-cache-extension"} {
		chart := resource(name, "helmChart/v1", r.refs["charts/"+name])
		chart["extraIdentity"] = map[string]any{"type": "helmChart"}
		resources = append(resources, chart)
	}
	return resources
}
