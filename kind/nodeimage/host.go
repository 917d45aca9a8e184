package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
)

// hostTool is something that a build needs on this machine.
type hostTool struct {
	// debian is the package that has it, in Debian and Ubuntu.
	debian string
	// present tells whether it is there.
	present func() bool
}

// hostTools lists what a build calls beside the Go toolchain: mmdebstrap with Debian's keys for the file trees, a C
// compiler with static libraries for runc (with seccomp) and for Kubernetes' pause.
func hostTools() []hostTool {
	return []hostTool{
		{"mmdebstrap", command("mmdebstrap")},
		{"debian-archive-keyring", file("/usr/share/keyrings/debian-archive-keyring.gpg")},
		{"gcc", command("gcc")},
		{"libc6-dev", file("/usr/include/stdlib.h")},
		{"pkg-config", command("pkg-config")},
		{"libseccomp-dev", file("/usr/include/seccomp.h")},
	}
}

func command(name string) func() bool {
	return func() bool { _, err := osexec.LookPath(name); return err == nil }
}

func file(name string) func() bool {
	return func() bool { _, err := os.Stat(name); return err == nil }
}

// missingPackages returns the Debian packages of the tools that are not there.
func missingPackages(tools []hostTool) []string {
	var packages []string
	for _, tool := range tools {
		if !tool.present() {
			packages = append(packages, tool.debian)
		}
	}
	return packages
}

// installCommand is what a person types to get the packages.
func installCommand(packages []string) string {
	return "apt-get install --no-install-recommends " + strings.Join(packages, " ")
}

// installPackages installs Debian packages on this machine, which needs root and apt-get.
func installPackages(ctx context.Context, packages []string) error {
	if os.Geteuid() != 0 || !command("apt-get")() {
		return fmt.Errorf("building the node image needs Debian packages that are not installed; as root: %s", installCommand(packages))
	}
	install := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	return retry(ctx, fetchBackoff, "installing "+strings.Join(packages, " "), func(ctx context.Context) error {
		if err := apt(ctx, install...); err == nil {
			return nil
		}
		// the package lists may be missing or outdated
		return errors.Join(apt(ctx, "update"), apt(ctx, install...))
	})
}

func apt(ctx context.Context, args ...string) error {
	const lockSeconds = "DPkg::Lock::Timeout=300"
	return interruptible(ctx, "apt-get", append([]string{"--quiet", "--option", lockSeconds}, args...)...).
		SetEnv(append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")...).Run()
}
