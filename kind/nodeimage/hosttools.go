package nodeimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/debian"
)

// hostTool is something that a build needs on this machine.
type hostTool struct {
	// debian is its package in Debian and Ubuntu.
	debian string
	// file is an absolute path of the package, or a command in $PATH.
	file string
}

// hostTools are the tools beside Go: mmdebstrap with Debian's keys for the file trees, and a C
// compiler with static libraries for runc (with seccomp) and Kubernetes' pause.
var hostTools = []hostTool{
	{"mmdebstrap", "mmdebstrap"},
	{"debian-archive-keyring", "/usr/share/keyrings/debian-archive-keyring.gpg"},
	{"gcc", "gcc"},
	{"libc6-dev", "/usr/include/stdlib.h"},
	{"pkg-config", "pkg-config"},
	{"libseccomp-dev", "/usr/include/seccomp.h"},
}

func present(file string) bool {
	_, err := os.Stat(file)
	if !filepath.IsAbs(file) {
		_, err = exec.LookPath(file)
	}
	return err == nil
}

// missingPackages returns the Debian packages of the missing tools.
func missingPackages(tools []hostTool) []string {
	var packages []string
	for _, tool := range tools {
		if !present(tool.file) {
			packages = append(packages, tool.debian)
		}
	}
	return packages
}

// installPackages installs Debian packages on this machine. It needs root and apt-get.
func installPackages(ctx context.Context, packages []string) error {
	if os.Geteuid() != 0 || !present("apt-get") {
		return fmt.Errorf("building the node image needs missing Debian packages; run as root: apt-get install --no-install-recommends %s",
			strings.Join(packages, " "))
	}
	return debian.Install(ctx, packages...)
}
