package nodeimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/debian"
)

// hostTool is something that a build needs on this machine.
type hostTool struct {
	// debian is its package in Debian and Ubuntu.
	debian string
	// present reports whether the tool is there.
	present func() bool
}

// hostTools returns the tools beside Go: mmdebstrap with Debian's keys for the file trees, and a C
// compiler with static libraries for runc (with seccomp) and Kubernetes' pause.
func hostTools() []hostTool {
	return []hostTool{
		{"mmdebstrap", inPath("mmdebstrap")},
		{"debian-archive-keyring", isFile("/usr/share/keyrings/debian-archive-keyring.gpg")},
		{"gcc", inPath("gcc")},
		{"libc6-dev", isFile("/usr/include/stdlib.h")},
		{"pkg-config", inPath("pkg-config")},
		{"libseccomp-dev", isFile("/usr/include/seccomp.h")},
	}
}

func inPath(name string) func() bool {
	return func() bool { _, err := exec.LookPath(name); return err == nil }
}

func isFile(name string) func() bool {
	return func() bool { _, err := os.Stat(name); return err == nil }
}

// missingPackages returns the Debian packages of the missing tools.
func missingPackages(tools []hostTool) []string {
	var packages []string
	for _, tool := range tools {
		if !tool.present() {
			packages = append(packages, tool.debian)
		}
	}
	return packages
}

// installPackages installs Debian packages on this machine. It needs root and apt-get.
func installPackages(ctx context.Context, packages []string) error {
	if os.Geteuid() != 0 || !inPath("apt-get")() {
		return fmt.Errorf("building the node image needs missing Debian packages; run as root: apt-get install --no-install-recommends %s",
			strings.Join(packages, " "))
	}
	return debian.Install(ctx, packages...)
}
