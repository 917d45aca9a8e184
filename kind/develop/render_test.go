package develop

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gardener-extensions/registry-cache/kind"
)

// TestInnerLoopManifestRenders checks that gardenlet's reconciler can render the extension's chart
// with the ControllerDeployment that Skaffold uses.
func TestInnerLoopManifestRenders(t *testing.T) {
	testbed, err := kind.New(kind.Options{})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.Open("../../tools/skaffold/controller-deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer manifest.Close()
	values, err := valuesOf(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.2"})
	if err := render(t.Context(), testbed, renderer, values, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kind: Namespace", "name: " + kind.ExtensionNamespace, "kind: Secret", "kind: ManagedResource", "class: seed", "namespace: garden",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "---\n"); n != 3 {
		t.Errorf("%d documents, want 3", n)
	}
}

func TestValuesOfRefuses(t *testing.T) {
	const head = "apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\nmetadata: {name: registry-cache}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":       {"", "want a ControllerDeployment"},
		"another kind":  {"apiVersion: v1\nkind: Secret\n", `got kind "Secret"`},
		"another name":  {strings.Replace(head, "registry-cache", "other", 1) + "helm: {values: {a: 1}}\n", "metadata.name"},
		"no values":     {head + "helm: {}\n", "helm.values: required"},
		"unknown field": {head + "helm: {value: {a: 1}}\n", `unknown field "value"`},
		"a list":        {head + "helm: {values: [a]}\n", "helm.values"},
		"two documents": {head + "helm: {values: {a: 1}}\n---\n" + head, "several documents"},
		"no YAML":       {"{", "read the ControllerDeployment"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := valuesOf(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to contain %q", err, tc.want)
			}
		})
	}
	values, err := valuesOf(strings.NewReader("---\n" + head + "helm: {values: {a: 1}}\n---\n"))
	if err != nil || values["a"] == nil {
		t.Errorf("values %v, error %v", values, err)
	}
}
