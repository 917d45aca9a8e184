package nodeimage

import (
	"os"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func TestStorageManifest(t *testing.T) {
	upstream, err := os.ReadFile("testdata/local-path-storage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := storageManifest(upstream)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "default-storage.golden.yaml", got)
}

func TestStorageManifestRefusesWhatItDoesNotKnow(t *testing.T) {
	const deployment = "kind: Deployment\nspec: {template: {spec: {containers: %s}}}\n"
	tests := map[string]struct{ manifest, err string }{
		"two containers": {strings.Replace(deployment, "%s", "[{name: a}, {name: b}]", 1), "want one container, got 2"},
		"no container":   {strings.Replace(deployment, "%s", "[]", 1), "want one container, got 0"},
		"no YAML":        {"{", "reading local-path-provisioner's manifest"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := storageManifest([]byte(tt.manifest)); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}
