package cachetest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
)

// TestInnerLoopManifestRenders checks that gardenlet's reconciler can render the extension's chart
// with the ControllerDeployment that Skaffold uses.
func TestInnerLoopManifestRenders(t *testing.T) {
	testbed, err := kind.New(kind.Options{Extension: Extension()})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.Open("../tools/skaffold/controller-deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer manifest.Close()
	var out bytes.Buffer
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.4"})
	if err := develop.Render(t.Context(), testbed, renderer, manifest, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kind: Namespace", "name: " + ExtensionNamespace, "kind: Secret", "kind: ManagedResource", "class: seed", "namespace: garden",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "---\n"); n != 3 {
		t.Errorf("%d documents, want 3", n)
	}
}
