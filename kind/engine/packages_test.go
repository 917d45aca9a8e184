package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coreos/go-systemd/v22/util"
)

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// TestInstallPackages replaces dpkg and apt-get with scripts that record their arguments.
func TestInstallPackages(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("POLICY_RC_D", filepath.Join(dir, "policy-rc.d"))
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
		if err := InstallPackages(t.Context(), "tool", "other"); err != nil {
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
		err := InstallPackages(t.Context(), "tool")
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
		if err := InstallPackages(ctx, "tool"); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		if got := content(t, calls); got != "" {
			t.Errorf("calls:\n%s", got)
		}
	})
}

// TestPolicy: services cannot start while packages are installed. Afterwards they can, even after
// an interruption.
func TestPolicy(t *testing.T) {
	if util.IsRunningSystemd() {
		t.Skip("with systemd there is no policy")
	}
	const own = "#!/bin/sh\nexit 101\n"
	const ours = "#!/bin/sh\n# Written by the registry-cache testbed for the time of one apt-get run.\nexit 101\n"
	for _, tc := range []struct {
		name, before, during, after string // the content of the policy; empty if there is no file
		interrupted                 bool
	}{
		{"none there", "", ours, "", false},
		{"interrupted", "", ours, "", true},
		{"the host's own policy stays", own, own, own, false},
		{"one that a killed run left", ours, ours, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			policy, seen, started := filepath.Join(dir, "policy-rc.d"), filepath.Join(dir, "seen"), filepath.Join(dir, "started")
			if err := syscall.Mkfifo(started, 0o600); err != nil {
				t.Fatal(err)
			}
			wait := ""
			if tc.interrupted {
				wait = "echo >" + started + "; exec sleep 600\n"
			}
			files := map[string]string{"dpkg": "#!/bin/sh\n", "apt-get": "#!/bin/sh\ncp " + policy + " " + seen + "\n" + wait}
			if tc.before != "" {
				files["policy-rc.d"] = tc.before
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			t.Setenv("POLICY_RC_D", policy)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.interrupted {
				go func() {
					_, _ = os.ReadFile(started) // blocks until apt-get runs
					cancel()
				}()
			}
			if err := InstallPackages(ctx, "tool"); (err != nil) != tc.interrupted {
				t.Errorf("error %v", err)
			}
			if got := content(t, seen); got != tc.during {
				t.Errorf("while packages are installed: %q, want %q", got, tc.during)
			}
			if info, err := os.Stat(seen); err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("the policy cannot be executed: %v, %v", info, err)
			}
			if got := content(t, policy); got != tc.after {
				t.Errorf("afterwards: %q, want %q", got, tc.after)
			}
		})
	}
}
