package diagnostics

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
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

// TestDiagnoseReplaces checks that Diagnose removes an earlier bundle, unless ctx has already
// ended. In both cases the metrics of the earlier bundle are not kept for the next one.
func TestDiagnoseReplaces(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		left bool
	}{{"of a testbed without parts", t.Context(), false}, {"after Ctrl-C", ended, true}} {
		t.Run(tc.name, func(t *testing.T) {
			testbed, dir := &kind.Testbed{State: kind.State(t.TempDir())}, t.TempDir()
			old := filepath.Join(dir, "metrics", "registry-alpha-0.prom")
			if err := os.MkdirAll(filepath.Dir(old), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(old, []byte("up 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_ = Diagnose(tc.ctx, testbed, dir) // the error lists what could not be collected
			if _, err := os.Stat(old); os.IsNotExist(err) == tc.left {
				t.Errorf("an earlier bundle is left: %t (%v), want %t", !os.IsNotExist(err), err, tc.left)
			}
			if _, err := os.Stat(testbed.State.Metrics()); !os.IsNotExist(err) {
				t.Errorf("its metrics are kept: %v", err)
			}
		})
	}
}
