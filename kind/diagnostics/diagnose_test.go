package diagnostics

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
)

// TestDiagnoseReplaces: of an earlier bundle in the folder nothing is left, unless nothing was
// collected; and in no case it is what the next bundle is compared with.
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
			_ = Diagnose(tc.ctx, testbed, dir) // that parts are missing
			if _, err := os.Stat(old); os.IsNotExist(err) == tc.left {
				t.Errorf("an earlier bundle is left: %t (%v), want %t", !os.IsNotExist(err), err, tc.left)
			}
			if _, err := os.Stat(testbed.State.Metrics()); !os.IsNotExist(err) {
				t.Errorf("its metrics are kept: %v", err)
			}
		})
	}
}
