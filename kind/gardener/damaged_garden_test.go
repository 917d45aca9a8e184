package gardener

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGardenReportsWhatItCannotStore(t *testing.T) {
	garden := openGarden(t, filepath.Join(t.TempDir(), "missing", "garden.json"))
	if err := garden.Create(t.Context(), gardenSecret()); err == nil || !strings.Contains(err.Error(), "save the garden") {
		t.Errorf("error %v", err)
	}
}

func TestDamagedGarden(t *testing.T) {
	for name, content := range map[string]string{
		"half of it": `{"items":[{"kind":"Sec`, "a thing": `{"items":[{"kind":"Thing","apiVersion":"v1"}]}`, "no object": `{"items":[7]}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "garden.json")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenGarden(path); err == nil || !strings.Contains(err.Error(), "remove "+path+" to continue") {
				t.Errorf("error %v", err)
			}
		})
	}
}
