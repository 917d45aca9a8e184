package file

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "name")
	for _, content := range []string{"first and long", "second"} {
		if err := Replace(path, []byte(content), 0o741); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || string(data) != content {
			t.Errorf("content is %q, %v; want %q", data, err, content)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o741 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	onlyEntry(t, directory, "name")
}

// TestReplaceLeavesAnOpenFile checks that Replace does not write into the existing file: a process
// that has that file open still reads the old content.
func TestReplaceLeavesAnOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "name")
	if err := Replace(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := Replace(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := reader.Read(got); err != nil || string(got) != "old" {
		t.Errorf("the open file has %q, %v", got, err)
	}
}

func TestReplaceFails(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by-a-directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("x"), 0o600); err == nil {
		t.Error("no error where a directory lies")
	}
	onlyEntry(t, directory, "taken")
	if err := Replace(filepath.Join(directory, "missing", "name"), nil, 0o600); err == nil {
		t.Error("no error without a directory")
	}
}

func onlyEntry(t *testing.T, directory, name string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the directory holds %v, want %s only", entries, name)
	}
}
