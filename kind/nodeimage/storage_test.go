package nodeimage

import (
	"os"
	"strings"
	"testing"
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
	const golden = "testdata/default-storage.golden.yaml"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nto accept: UPDATE_GOLDEN=1 go test ./kind/nodeimage", got)
	}
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
