package nodeimage

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestTreeArguments(t *testing.T) {
	tests := []struct {
		name string
		tree debianTree
		want []string
		not  []string
	}{
		{"root file system", debianTree{packages: []string{"systemd", "curl"}, script: "x"},
			[]string{"--variant=minbase", "--include=systemd,curl", "--customize-hook=/s"}, []string{"--variant=extract"}},
		{"files only", debianTree{packages: []string{"nftables"}, extractOnly: true},
			[]string{"--variant=extract", "--include=nftables"}, []string{"--customize-hook=/s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.tree.arguments("/s", "/t.tar")
			if n := len(args); args[n-2] != suite || args[n-1] != "/t.tar" {
				t.Errorf("the last arguments are %v, want suite and target", args[n-2:])
			}
			for _, arg := range tt.want {
				if !slices.Contains(args, arg) {
					t.Errorf("%v: no %s", args, arg)
				}
			}
			for _, arg := range tt.not {
				if slices.Contains(args, arg) {
					t.Errorf("%v: has %s", args, arg)
				}
			}
		})
	}
}

func TestTreeEntryDependsOnItsRecipe(t *testing.T) {
	base := debianTree{name: "rootfs", packages: []string{"curl", "jq"}}
	tests := map[string]debianTree{
		"packages": {name: "rootfs", packages: []string{"curl"}},
		"script":   {name: "rootfs", packages: base.packages, script: "rm -f x"},
		"variant":  {name: "rootfs", packages: base.packages, extractOnly: true},
	}
	for name, other := range tests {
		t.Run(name, func(t *testing.T) {
			if other.entry("go") == base.entry("go") {
				t.Error("a different tree has the same entry in the cache")
			}
		})
	}
	if base.entry("go linux/arm64") == base.entry("go linux/amd64") {
		t.Error("another architecture has the same entry in the cache")
	}
}

// TestRootfsScript runs the script on a small tree.
func TestRootfsScript(t *testing.T) {
	root := t.TempDir()
	gone := []string{
		"lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
		"lib/systemd/system/multi-user.target.wants/getty.target",
		"lib/systemd/system/local-fs.target.wants/var-lib-machines.mount",
		"lib/systemd/system/basic.target.wants/x.service",
		"lib/systemd/system/sockets.target.wants/systemd-udevd-control.socket",
		"lib/systemd/system/sockets.target.wants/systemd-initctl.socket",
		"etc/systemd/system/timers.target.wants/apt-daily.timer",
		"etc/resolv.conf",
		"etc/hostname",
	}
	stays := []string{
		"lib/systemd/system/sysinit.target.wants/systemd-journald.service",
		"lib/systemd/system/sockets.target.wants/dbus.socket",
		"lib/systemd/system/dbus.service",
	}
	for _, name := range slices.Concat(gone, stays) {
		write(t, filepath.Join(root, name), "")
	}
	for _, run := range []string{"first", "second, on the result"} {
		if out, err := exec.Command("sh", "rootfs.sh", root).CombinedOutput(); err != nil {
			t.Fatalf("%s run: %v\n%s", run, err, out)
		}
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range stays {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestMissingPackages(t *testing.T) {
	there, absent := filepath.Join(t.TempDir(), "stdlib.h"), filepath.Join(t.TempDir(), "seccomp.h")
	write(t, there, "")
	tests := []struct {
		name  string
		tools []hostTool
		want  []string
	}{
		{"all there", []hostTool{{"libc6-dev", there}, {"shell", "sh"}}, nil},
		{"some missing", []hostTool{{"gcc", "no-such-compiler"}, {"libc6-dev", there}, {"libseccomp-dev", absent}}, []string{"gcc", "libseccomp-dev"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := missingPackages(tt.tools); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestInstallPackagesWithoutAptSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := installPackages(t.Context(), []string{"gcc", "mmdebstrap"})
	if err == nil || !strings.Contains(err.Error(), "as root: apt-get install --no-install-recommends gcc mmdebstrap") {
		t.Errorf("got %v", err)
	}
}

func TestRetry(t *testing.T) {
	failure := errors.New("connection reset")
	backoff := wait.Backoff{Steps: 3, Duration: time.Microsecond}
	tests := []struct {
		name     string
		failures int
		canceled bool
		calls    int
		err      error
	}{
		{"at once", 0, false, 1, nil},
		{"second try", 1, false, 2, nil},
		{"never", 9, false, 3, failure},
		{"canceled", 0, true, 0, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.canceled {
				cancel()
			}
			calls := 0
			err := retry(ctx, backoff, "fetching x", func(context.Context) error {
				if calls++; calls <= tt.failures {
					return failure
				}
				return nil
			})
			if calls != tt.calls || !errors.Is(err, tt.err) {
				t.Errorf("%d calls, %v; want %d, %v", calls, err, tt.calls, tt.err)
			}
		})
	}
}
