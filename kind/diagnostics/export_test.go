package diagnostics

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bundle/index.md", "# Diagnostics: now\n")
	write("bundle/other", "")
	write("mine/letter.txt", "")
	write("site/index.md", "# My site\n")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, fine := range map[string]bool{"absent": true, "empty": true, "bundle": true, "mine": false, "site": false, "mine/letter.txt": false} {
		err := checkFolder(filepath.Join(dir, name))
		if (err == nil) != fine {
			t.Errorf("%s: %v", name, err)
		}
		if occupied := (*OccupiedError)(nil); errors.As(err, &occupied) != (name == "mine" || name == "site") {
			t.Errorf("%s: %T", name, err)
		}
	}
}
