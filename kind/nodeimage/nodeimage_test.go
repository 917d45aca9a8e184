package nodeimage

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBegun(t *testing.T) {
	tests := []struct {
		name    string
		entries []string
		want    bool
	}{
		{"no cache", nil, false},
		{"a lock only", []string{lockFile}, false},
		{"a part", []string{lockFile, "containerd-1"}, true},
		{"an unfinished part", []string{lockFile, tempDir}, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			for _, entry := range tc.entries {
				if err := os.MkdirAll(filepath.Join(dir, entry), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := HasParts(Options{CacheDir: dir}); err != nil || got != tc.want {
				t.Errorf("got %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}
