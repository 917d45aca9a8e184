package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/util"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	installTimeout  = 8 * time.Minute
	installAttempts = 3
	lockSeconds     = "120" // how long apt-get waits for another apt-get or dpkg
	// stopDelay is the time between SIGTERM and SIGKILL, so that dpkg can reach a consistent state.
	stopDelay = 20 * time.Second
)

// InstallPackages updates the package lists and installs packages as root, without recommended
// packages and without prompts. It first configures packages that an interrupted run left
// unconfigured. On a host without systemd, no service starts. InstallPackages tries up to three
// times within 8 minutes. The error contains the end of the last output.
func InstallPackages(ctx context.Context, packages ...string) error {
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
	for _, argv := range installCommands(packages) {
		if err := run(ctx, argv); err != nil {
			return err
		}
	}
	return nil
}

// installCommands returns the commands of one attempt, in order.
func installCommands(packages []string) [][]string {
	apt := func(args ...string) []string {
		return append([]string{"apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=" + lockSeconds, "-o", "Acquire::Retries=3"}, args...)
	}
	return [][]string{
		{"dpkg", "--configure", "-a"}, // finishes an interrupted installation
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

const (
	policyFile = "/usr/sbin/policy-rc.d"
	policy     = "#!/bin/sh\n# Written by the registry-cache testbed for the time of one apt-get run.\nexit 101\n"
)

// AllowServiceStart removes the policy-rc.d that a killed run left, so that packages can start
// services again. It does nothing while packages are installed, or if the host has its own
// policy-rc.d.
func AllowServiceStart() error {
	return removePolicy(policyFile, lockFile())
}

func lockFile() string { return filepath.Join(file.LockDirectory(), "packages.lock") }

func removePolicy(policyFile, lockFile string) error {
	if present, err := os.ReadFile(policyFile); err != nil || string(present) != policy {
		return nil // missing, not readable, or not written by InstallPackages
	}
	unlock, err := file.TryLock(lockFile)
	if errors.Is(err, file.ErrLocked) {
		return nil
	}
	if err == nil {
		defer unlock()
		err = os.Remove(policyFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("an interrupted run left %s, which keeps packages from starting services (as root: rm %[1]s): %w", policyFile, err)
	}
	return nil
}

// denyServiceStart keeps package scripts from starting services on a host without systemd, where an
// init script would hang or fail. InstallPackages in other processes waits until restore is called.
func denyServiceStart(ctx context.Context) (restore func(), err error) {
	unlock, err := file.Lock(ctx, lockFile(), installTimeout)
	if err != nil {
		return nil, fmt.Errorf("waiting for another testbed to finish installing packages: %w", err)
	}
	if util.IsRunningSystemd() {
		return unlock, nil
	}
	remove, err := placePolicy(policyFile)
	if err != nil {
		unlock()
		return nil, err
	}
	return func() { remove(); unlock() }, nil
}

// placePolicy writes a policy-rc.d that denies all service actions, see invoke-rc.d(8), unless the
// host has its own. restore also removes one that an interrupted run left.
func placePolicy(path string) (restore func(), err error) {
	present, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = file.Replace(path, []byte(policy), 0o755)
	case err == nil && string(present) != policy:
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("keeping packages from starting services: %w", err)
	}
	return func() { _ = os.Remove(path) }, nil
}
