package diagnostics

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// bundleWith creates a bundle with these files in its folder metrics.
func bundleWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, "metrics", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestKeepMetrics checks that KeepMetrics stores the current metrics of a bundle without those in
// "before", and that a bundle without metrics changes nothing.
func TestKeepMetrics(t *testing.T) {
	state := t.TempDir()
	previous := filepath.Join(state, "metrics.json")
	for _, tc := range []struct {
		name string
		dir  string
		want string
	}{
		{"none", t.TempDir(), ""},
		{"the first", bundleWith(t, map[string]string{"a.prom": "1", "before/b.prom": "2", "summary.txt": "3"}), "1"},
		{"the next", bundleWith(t, map[string]string{"a.prom": "\xff"}), "\xff"},
		{"none again", t.TempDir(), "\xff"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := KeepMetrics(tc.dir, previous); err != nil {
				t.Fatal(err)
			}
			kept, err := readKept(previous)
			if err != nil || string(kept.Pods["a"]) != tc.want || len(kept.Pods) > 1 {
				t.Errorf("kept %q, error %v; want %q of a", kept.Pods, err, tc.want)
			}
			if tc.want != "" && time.Since(kept.At) > time.Minute {
				t.Errorf("time %s", kept.At)
			}
		})
	}
	if entries, err := os.ReadDir(state); err != nil || len(entries) != 1 {
		t.Errorf("more than one file: %v, %v", entries, err)
	}
}

// TestKeepMetricsFails checks that the previous metrics are still there after a failure.
func TestKeepMetricsFails(t *testing.T) {
	previous := filepath.Join(t.TempDir(), "metrics.json")
	if err := KeepMetrics(bundleWith(t, map[string]string{"a.prom": "1"}), previous); err != nil {
		t.Fatal(err)
	}
	broken := bundleWith(t, map[string]string{"a.prom": "2", "b.prom/file": "a folder"})
	if err := KeepMetrics(broken, previous); err == nil {
		t.Error("metrics that cannot be read were kept")
	}
	if kept, err := readKept(previous); err != nil || string(kept.Pods["a"]) != "1" {
		t.Errorf("kept %q, error %v", kept.Pods, err)
	}
}
