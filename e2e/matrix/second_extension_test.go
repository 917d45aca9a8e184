package matrix

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// TestSecondExtension: the manifests that gardenlet installs for the extension in
// second-extension.yaml contain the extension's image, and a webhook with a CA bundle.
func TestSecondExtension(t *testing.T) {
	config, err := configuration.Load("second-extension.yaml")
	if err != nil {
		t.Fatal(err)
	}
	testbed, err := kind.New(kind.Options{Directory: t.TempDir(), Locks: t.TempDir(), Configuration: config})
	if err != nil {
		t.Fatal(err)
	}
	extension := testbed.Extension
	if names := extension.AllImages(); len(names) != 1 || names[0] != "second-extension" || extension.Namespace() != "extension-second-extension" {
		t.Fatalf("images %q, namespace %s", names, extension.Namespace())
	}
	installation, err := extension.Installation(extension.Chart, extension.Values(image.Set{"second-extension": {Ref: "registry.test/second:1"}}))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := installation.Objects(t.Context(), chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.4"}))
	if err != nil {
		t.Fatal(err)
	}
	var manifests strings.Builder
	for _, object := range objects {
		data, _ := object.Object["data"].(map[string]any)
		for _, value := range data {
			manifest, err := base64.StdEncoding.DecodeString(value.(string))
			if err != nil {
				t.Fatal(err)
			}
			manifests.Write(manifest)
		}
	}
	if encoded, err := json.Marshal(objects); err != nil || manifests.Len() == 0 {
		t.Fatalf("no manifest in %s, %v", encoded, err)
	}
	for _, want := range []string{"image: registry.test/second:1", "kind: MutatingWebhookConfiguration\nmetadata:\n  name: " + installation.Webhooks[0], "caBundle: LS0t"} {
		if !strings.Contains(manifests.String(), want) {
			t.Errorf("no %q in:\n%s", want, &manifests)
		}
	}
}
