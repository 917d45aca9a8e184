package debian

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/lock"
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
			file := filepath.Join(t.TempDir(), "policy-rc.d")
			if tc.before != "" {
				if err := os.WriteFile(file, []byte(tc.before), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			restore, err := placePolicy(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := content(t, file); got != tc.during {
				t.Errorf("while packages are installed: %q, want %q", got, tc.during)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("the policy cannot be executed: %v, %v", info, err)
			}
			restore()
			if got := content(t, file); got != tc.after {
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
			file, lockFile := filepath.Join(t.TempDir(), "policy-rc.d"), filepath.Join(t.TempDir(), "lock")
			if tc.before != "" {
				if err := os.WriteFile(file, []byte(tc.before), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if tc.busy {
				unlock, err := lock.Try(lockFile)
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			if err := removePolicy(file, lockFile); err != nil {
				t.Fatal(err)
			}
			if got := content(t, file); got != tc.after {
				t.Errorf("afterwards: %q, want %q", got, tc.after)
			}
		})
	}
	t.Run("a policy that cannot be removed is an error", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "policy-rc.d")
		if err := os.WriteFile(file, []byte(policy), 0o755); err != nil {
			t.Fatal(err)
		}
		noLock := filepath.Join(file, "lock")
		if err := removePolicy(file, noLock); err == nil || !strings.Contains(err.Error(), "rm "+file) {
			t.Errorf("error %v does not say what to do", err)
		}
	})
}

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// TestInstall replaces dpkg and apt-get by scripts that record their arguments.
func TestInstall(t *testing.T) {
	if os.Geteuid() != 0 && !Systemd() {
		t.Skip("only root may place a policy")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	calls := filepath.Join(dir, "calls")
	fake := func(program, script string) {
		text := "#!/bin/sh\necho \"" + program + " $* [$DEBIAN_FRONTEND]\" >>" + calls + "\n" + script
		if err := os.WriteFile(filepath.Join(dir, program), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const apt = "apt-get -y -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "
	fake("dpkg", "")

	t.Run("fails once, then works", func(t *testing.T) {
		fake("apt-get", "case \"$*\" in *install*) [ -e "+dir+"/second ] || { touch "+dir+"/second; exit 100; };; esac\n")
		if err := Install(t.Context(), "tool", "other"); err != nil {
			t.Fatal(err)
		}
		once := "dpkg --configure -a [noninteractive]\n" + apt + "update [noninteractive]\n" +
			apt + "install --no-install-recommends tool other [noninteractive]\n"
		if got := content(t, calls); got != once+once {
			t.Errorf("calls:\n%s", got)
		}
	})
	t.Run("fails every time", func(t *testing.T) {
		fake("apt-get", "printf 'E: Unable to %s' fetch >&2; exit 100\n")
		err := Install(t.Context(), "tool")
		if err == nil || !strings.Contains(err.Error(), "Unable to fetch") || !strings.Contains(err.Error(), "apt-get install --no-install-recommends tool") {
			t.Errorf("error %v says neither why nor what to do", err)
		}
	})
	t.Run("stops when the context ends", func(t *testing.T) {
		if err := os.Remove(calls); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Install(ctx, "tool"); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		if got := content(t, calls); got != "" {
			t.Errorf("calls:\n%s", got)
		}
	})
}
