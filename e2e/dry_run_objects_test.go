//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/chartrenderer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
	"github.com/gardener-extensions/registry-cache/controller/monitoring"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/internal/helmchart"
)

// rendered contains an object and the name of its source, such as a file.
type rendered struct {
	from   string
	object *unstructured.Unstructured
}

// byGroup returns the objects that belong to one of these API groups, and the others.
func byGroup(objects []rendered, groups ...string) (these, others []rendered) {
	for _, object := range objects {
		if slices.Contains(groups, object.object.GroupVersionKind().Group) {
			these = append(these, object)
		} else {
			others = append(others, object)
		}
	}
	return these, others
}

// appendTyped appends the objects without their Go types, as gardener-resource-manager sends them.
func appendTyped(p *rig.Run, to []rendered, from string, scheme *runtime.Scheme, objects ...client.Object) []rendered {
	p.Helper()
	for _, object := range objects {
		kind, err := apiutil.GVKForObject(object, scheme)
		p.Check(err)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		p.Check(err)
		untyped := &unstructured.Unstructured{Object: content}
		untyped.SetGroupVersionKind(kind)
		to = append(to, rendered{from, untyped})
	}
	return to
}

// appendDocuments appends the objects of a YAML file. A duplicate key fails the scenario.
func appendDocuments(p *rig.Run, to []rendered, from string, content []byte) []rendered {
	p.Helper()
	for documents := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return to
		}
		p.Check(err)
		object := map[string]any{}
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			p.Fatalf("%s: %v", from, err)
		}
		if len(object) > 0 {
			to = append(to, rendered{from, &unstructured.Unstructured{Object: object}})
		}
	}
}

// plantedObjects returns objects that an API server must refuse or warn about. For each object,
// rendered.from is a word that the error or warning must contain.
func plantedObjects(restricted string) []rendered {
	object := func(content map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: content}
	}
	meta := map[string]any{"name": "planted", "namespace": restricted}
	return []rendered{
		{"spec.replica", object(map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": meta,
			"spec": map[string]any{"replica": int64(1), "ports": []any{map[string]any{"port": int64(80)}}},
		})},
		{"allowPrivilegeEscalation", object(map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": "planted"}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "planted"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "planted", "image": "planted"}}},
				},
			},
		})},
	}
}

// shootObjects returns the objects that the extension deploys into a shoot.
func shootObjects(p *rig.Run) (objects []rendered) {
	p.Helper()
	environment := cache.Shoot{
		Image: "registry.example/registry-cache:v1", KubernetesVersion: p.Session.Testbed.Gardenlet.Shoot.Version(),
		Networks: []string{"100.64.0.0/12", "fd00:10:64::/56"}, VerticalPodAutoscaler: true,
	}
	for _, c := range dryRunCaches(p) {
		id := v1alpha3.Identify([]v1alpha3.RegistryCache{c.cache}, nil)[0]
		these, err := cache.Objects(c.cache, id, environment, c.secrets)
		p.Check(err)
		services, err := cache.Services(c.cache, id, environment)
		p.Check(err)
		objects = appendTyped(p, objects, c.cache.Upstream, p.Session.Shoot.Scheme(), append(these, services...)...)
	}
	for _, task := range []cleaner.Task{{All: true}, {Upstreams: []string{"docker.io", "[2001:db8::1]:5000"}}} {
		set := cleaner.DaemonSet(task, "registry.example/registry-cache:v1")
		objects = appendTyped(p, objects, "cleaner", p.Session.Shoot.Scheme(), set)
	}
	return objects
}

func monitoringObjects(p *rig.Run) []rendered {
	p.Helper()
	config := dryRunConfig(p)
	objects := monitoring.Objects(rig.ShootNamespace, config, v1alpha3.Identify(config.Caches, nil))
	return appendTyped(p, nil, "monitoring", p.Session.Seed.Scheme(), objects...)
}

// chartObjects returns the objects of each chart, rendered once for each values file of its tests.
func chartObjects(p *rig.Run) (objects []rendered) {
	p.Helper()
	renderer, err := chartrenderer.NewForConfig(p.Session.Seed.Config)
	p.Check(err)
	for _, chart := range []string{"registry-cache-extension", "registry-cache-admission/runtime", "registry-cache-admission/application"} {
		archive, err := helmchart.Archive(os.DirFS("charts/"+chart), filepath.Base(chart))
		p.Check(err)
		for _, file := range files(p, "charts/testdata/"+chart+"/*.values.yaml") {
			values := map[string]any{}
			p.Check(yaml.Unmarshal(content(p, file), &values))
			release, err := renderer.RenderArchive(archive, "registry-cache", cachetest.ExtensionNamespace, values)
			p.Check(err)
			objects = appendDocuments(p, objects, strings.TrimPrefix(file, "charts/testdata/"), release.Manifest())
		}
	}
	return objects
}

// exampleObjects returns the objects in examples. The seed has no project namespaces, so the
// Secrets are put in the namespace "default".
func exampleObjects(p *rig.Run) (objects []rendered) {
	p.Helper()
	for _, file := range append(files(p, "examples/*.yaml"), files(p, "examples/shoots/*.yaml")...) {
		objects = appendDocuments(p, objects, file, content(p, file))
	}
	for _, example := range objects {
		if example.object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Secret") {
			example.object.SetNamespace(metav1.NamespaceDefault)
		}
	}
	return objects
}

// files returns the files of the repository that match the pattern. The scenario fails if there are
// none.
func files(p *rig.Run, pattern string) []string {
	p.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		p.Fatalf("%s matches no file below the working directory: %v", pattern, err)
	}
	return found
}

func content(p *rig.Run, file string) []byte {
	p.Helper()
	content, err := os.ReadFile(file)
	p.Check(err)
	return content
}
