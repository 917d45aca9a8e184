package nodeconfig_test

import (
	"os"
	"path/filepath"
	"testing"
)

// expectGolden compares got with a file in testdata.
func expectGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; to accept: UPDATE_GOLDEN=1 go test ./nodeconfig\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
