package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	if os.Geteuid() != 0 && !util.IsRunningSystemd() {
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
