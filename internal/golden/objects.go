package golden

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

const valuesSuffix = ".values.yaml"

// Containers reads the golden files <case>.yaml of a chart, which are rendered with
// <case>.values.yaml. The result is the container of each file's Deployment, keyed by case. The
// test fails unless each file contains a Deployment with a single container.
func Containers(t testing.TB, folder string) map[string]corev1.Container {
	t.Helper()
	cases, err := filepath.Glob(filepath.Join(folder, "*"+valuesSuffix))
	if err != nil || len(cases) == 0 {
		t.Fatalf("%s contains no cases: %v", folder, err)
	}
	containers := map[string]corev1.Container{}
	for _, values := range cases {
		rendered := strings.TrimSuffix(values, valuesSuffix)
		deployment := deploymentIn(t, rendered+".yaml")
		if n := len(deployment.Spec.Template.Spec.Containers); n != 1 {
			t.Fatalf("the Deployment in %s.yaml has %d containers", rendered, n)
		}
		containers[filepath.Base(rendered)] = deployment.Spec.Template.Spec.Containers[0]
	}
	return containers
}

func deploymentIn(t testing.TB, file string) *appsv1.Deployment {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		if !strings.Contains(document, "\nkind: Deployment\n") {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict([]byte(document), deployment); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		return deployment
	}
	t.Fatalf("%s contains no Deployment", file)
	return nil
}

var flagInTemplate = regexp.MustCompile(`(?m)^ +- --([a-z-]+)`)

// Flags returns the flag names in the args of a chart template. The test fails if there are none.
func Flags(t testing.TB, template string) []string {
	t.Helper()
	content, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, match := range flagInTemplate.FindAllSubmatch(content, -1) {
		names = append(names, string(match[1]))
	}
	if len(names) == 0 {
		t.Fatalf("%s contains no flag", template)
	}
	return names
}

// Encode returns the object as YAML, with the apiVersion and kind from the scheme.
func Encode(t testing.TB, scheme *runtime.Scheme, object client.Object) []byte {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
