package debian

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	installTimeout  = 8 * time.Minute
	installAttempts = 3
	// lockSeconds is how long apt-get waits for another apt-get or dpkg.
	lockSeconds = "120"
	// stopDelay is how long an interrupted command gets to leave dpkg in a consistent state.
	stopDelay = 20 * time.Second
)

// Install updates the package lists and installs the packages, without recommended ones. It needs
// root. It tries up to three times within 8 minutes in total. The error is that of the last attempt
// and includes the end of the output.
func Install(ctx context.Context, packages ...string) error {
	ctx, cancel := progress.Within(ctx, installTimeout, "apt-get did not finish")
	defer cancel()
	restore, err := denyServiceStart(ctx)
	if err != nil {
		return err
	}
	defer restore()

	for range installAttempts {
		if err = attempt(ctx, packages); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("installing %s (as root: apt-get install --no-install-recommends %[1]s): %w", strings.Join(packages, " "), err)
	}
	return nil
}

func attempt(ctx context.Context, packages []string) error {
	for _, argv := range commands(packages) {
		if err := run(ctx, argv); err != nil {
			return err
		}
	}
	return nil
}

// commands returns the commands of one attempt, in order.
func commands(packages []string) [][]string {
	apt := func(args ...string) []string {
		return append([]string{"apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=" + lockSeconds, "-o", "Acquire::Retries=3"}, args...)
	}
	return [][]string{
		{"dpkg", "--configure", "-a"}, // finishes an interrupted run
		apt("update"),
		apt(append([]string{"install", "--no-install-recommends"}, packages...)...),
	}
}

func run(ctx context.Context, argv []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SetEnv(append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")...)
	if local, ok := cmd.(*exec.LocalCmd); ok {
		local.Cancel = func() error { return local.Process.Signal(syscall.SIGTERM) }
		local.WaitDelay = stopDelay
	}
	_, err := command.Run(ctx, cmd)
	return err
}
