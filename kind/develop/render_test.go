package develop

import (
	"io"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind"
)

// TestRenderWithGarden: the inner loop must not install a second copy of the extension.
func TestRenderWithGarden(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir(), Garden: ptr.To(true)})
	if err != nil {
		t.Fatal(err)
	}
	if err := RenderExtension(t.Context(), testbed, strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), "testbed kubectl garden") {
		t.Errorf("error %v", err)
	}
}

func TestValuesOfRefuses(t *testing.T) {
	const head = "apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\nmetadata: {name: sample}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":       {"", "want a ControllerDeployment"},
		"another kind":  {"apiVersion: v1\nkind: Secret\n", `got kind "Secret"`},
		"another name":  {strings.Replace(head, "sample", "other", 1) + "helm: {values: {a: 1}}\n", "metadata.name"},
		"no values":     {head + "helm: {}\n", "helm.values: required"},
		"unknown field": {head + "helm: {value: {a: 1}}\n", `unknown field "value"`},
		"a list":        {head + "helm: {values: [a]}\n", "helm.values"},
		"two documents": {head + "helm: {values: {a: 1}}\n---\n" + head, "several documents"},
		"no YAML":       {"{", "read the ControllerDeployment"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := valuesOf(strings.NewReader(tc.text), "sample"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to contain %q", err, tc.want)
			}
		})
	}
	values, err := valuesOf(strings.NewReader("---\n"+head+"helm: {values: {a: 1}}\n---\n"), "sample")
	if err != nil || values["a"] == nil {
		t.Errorf("values %v, error %v", values, err)
	}
}
