package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

const (
	installTimeout  = 8 * time.Minute
	installAttempts = 3
)

// install installs the packages, without what they recommend. Each attempt heals what an interrupted one left.
func install(ctx context.Context, p plan) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("apt-get was not done in %s", installTimeout))
	defer cancel()
	if !p.systemd {
		restore, err := denyServiceStart()
		if err != nil {
			return err
		}
		defer restore()
	}

	var err error
	for range installAttempts {
		if err = aptInstall(ctx, p.install...); err == nil {
			break
		}
		if ctx.Err() != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("installing %v failed %d times: %w", p.install, installAttempts, err)
	}
	if !hasProgram("docker") {
		// Since Debian 13 the client is a package of its own.
		return aptInstall(ctx, "docker-cli")
	}
	return nil
}

func aptInstall(ctx context.Context, packages ...string) error {
	apt := []string{"apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"}
	steps := [][]string{
		{"dpkg", "--configure", "-a"}, // what an interrupted run left half done
		append(apt, "update"),
		append(append(apt, "install", "--no-install-recommends"), packages...),
	}
	for _, argv := range steps {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.SetEnv(append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")...)
		if local, ok := cmd.(*exec.LocalCmd); ok {
			// dpkg leaves a consistent state on SIGTERM, not on SIGKILL.
			local.Cancel = func() error { return local.Process.Signal(syscall.SIGTERM) }
			local.WaitDelay = 20 * time.Second
		}
		if _, err := command.Run(ctx, cmd); err != nil {
			return err
		}
	}
	return nil
}

const (
	policyFile = "/usr/sbin/policy-rc.d"
	policy     = "#!/bin/sh\n# Written by the registry-cache testbed for the time of one apt-get run.\nexit 101\n"
)

// denyServiceStart keeps package scripts from starting services by init scripts, which would hang or fail on a host
// without an init system; see invoke-rc.d(8). A policy of the host's own is left alone.
func denyServiceStart() (restore func(), err error) {
	present, err := os.ReadFile(policyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.WriteFile(policyFile, []byte(policy), 0o755); err != nil {
			return nil, fmt.Errorf("keeping packages from starting services: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", policyFile, err)
	case string(present) != policy:
		return func() {}, nil
	}
	return func() { _ = os.Remove(policyFile) }, nil
}
