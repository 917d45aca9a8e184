package cleaner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReplaceFile(t *testing.T) {
	for name, test := range map[string]struct {
		old, want string
		err       error
	}{
		"as it was read":    {"one", "two", nil},
		"replaced meantime": {"zero", "one", errReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "unit")
			if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			if err := replaceFile(root, "unit", test.old, "two"); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != test.want {
				t.Errorf("the file has %q, %v, want %q", got, err, test.want)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("the directory has %v, %v", entries, err)
			}
		})
	}
}
