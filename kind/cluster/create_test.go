package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEmptyScratch(t *testing.T) {
	state := filepath.Join(t.TempDir(), "testbed")
	config := Config{Name: "a-seed", Kubeconfig: filepath.Join(state, "seed.kubeconfig")}
	for _, run := range []string{"the first", "after a killed one"} {
		t.Run(run, func(t *testing.T) {
			scratch, err := emptyScratch(config)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Dir(scratch) != state {
				t.Errorf("%s is not in the testbed's folder %s", scratch, state)
			}
			if info, err := os.Stat(scratch); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, %v: others may read it", info.Mode(), err)
			}
			if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
				t.Errorf("it holds %v, %v", left, err)
			}
			if err := os.WriteFile(filepath.Join(scratch, "kubeconfig.lock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	other, err := emptyScratch(Config{Name: "a-shoot", Kubeconfig: config.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(state, ".create-a-seed", "kubeconfig.lock")); err != nil || filepath.Base(other) == ".create-a-seed" {
		t.Errorf("clusters that are created at once share %s: %v", other, err)
	}
}
