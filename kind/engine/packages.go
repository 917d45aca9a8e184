package engine

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	installTimeout = 8 * time.Minute
	// stopDelay is the time between SIGTERM and SIGKILL, so that dpkg can reach a consistent state.
	stopDelay = 20 * time.Second
)

//go:embed packages.sh
var packagesScript string

// InstallPackages updates the package lists and installs packages as root, without recommended
// packages and without prompts. It first configures packages that an interrupted run left
// unconfigured. On a host without systemd, no service starts. InstallPackages tries up to three
// times within 8 minutes. The error contains the end of the last output.
func InstallPackages(ctx context.Context, packages ...string) error {
	ctx, cancel := progress.Within(ctx, installTimeout, "apt-get did not finish")
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-s", "--"}, packages...)...)
	cmd.SetStdin(strings.NewReader(packagesScript))
	if local, ok := cmd.(*exec.LocalCmd); ok {
		local.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		local.Cancel = func() error { return syscall.Kill(-local.Process.Pid, syscall.SIGTERM) }
		local.WaitDelay = stopDelay
	}
	if _, err := command.Run(ctx, cmd); err != nil {
		return fmt.Errorf("install %s (as root: apt-get install --no-install-recommends %[1]s): %w", strings.Join(packages, " "), err)
	}
	return nil
}
