package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

func TestPolicy(t *testing.T) {
	const own = "#!/bin/sh\nexit 101\n"
	tests := []struct {
		name, before, during, after string // empty: no file
	}{
		{"none there", "", policy, ""},
		{"the host's own policy stays", own, own, own},
		{"one that an interrupted run left", policy, policy, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy-rc.d")
			if tc.before != "" {
				if err := os.WriteFile(path, []byte(tc.before), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			restore, err := placePolicy(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := content(t, path); got != tc.during {
				t.Errorf("while packages are installed: %q, want %q", got, tc.during)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("the policy cannot be executed: %v, %v", info, err)
			}
			restore()
			if got := content(t, path); got != tc.after {
				t.Errorf("afterwards: %q, want %q", got, tc.after)
			}
		})
	}
}

func TestRestore(t *testing.T) {
	const own = "#!/bin/sh\nexit 101\n"
	tests := []struct {
		name, before string // empty: no file
		busy         bool
		after        string
	}{
		{"none there", "", false, ""},
		{"the host's own policy stays", own, false, own},
		{"one that a killed run left", policy, false, ""},
		{"one that a run still needs", policy, true, policy},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			path, lockFile := filepath.Join(t.TempDir(), "policy-rc.d"), filepath.Join(t.TempDir(), "lock")
			if tc.before != "" {
				if err := os.WriteFile(path, []byte(tc.before), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if tc.busy {
				unlock, err := file.TryLock(lockFile)
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			if err := removePolicy(path, lockFile); err != nil {
				t.Fatal(err)
			}
			if got := content(t, path); got != tc.after {
				t.Errorf("afterwards: %q, want %q", got, tc.after)
			}
		})
	}
	t.Run("a policy that cannot be removed is an error", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "policy-rc.d")
		if err := os.WriteFile(path, []byte(policy), 0o755); err != nil {
			t.Fatal(err)
		}
		noLock := filepath.Join(path, "lock")
		if err := removePolicy(path, noLock); err == nil || !strings.Contains(err.Error(), "rm "+path) {
			t.Errorf("error %v does not say what to do", err)
		}
	})
}
