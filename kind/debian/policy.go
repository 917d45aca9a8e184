package debian

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/lock"
)

const (
	policyFile = "/usr/sbin/policy-rc.d"
	policy     = "#!/bin/sh\n# Written by the registry-cache testbed for the time of one apt-get run.\nexit 101\n"
)

// Systemd reports whether systemd is this host's init system, as sd_booted(3) does.
func Systemd() bool {
	booted, err := os.Lstat("/run/systemd/system")
	return err == nil && booted.IsDir()
}

// AllowServiceStart removes the policy that a killed Install left, so that packages can start
// services again. It does nothing during another Install, and never removes any other policy.
func AllowServiceStart() error {
	return removePolicy(policyFile, lockFile())
}

// lockFile returns the path of the lock that Install holds.
func lockFile() string { return filepath.Join(lock.Directory(), "packages.lock") }

func removePolicy(policyFile, lockFile string) error {
	if present, err := os.ReadFile(policyFile); err != nil || string(present) != policy {
		return nil // not written by Install, as far as one can tell
	}
	unlock, err := lock.Try(lockFile)
	if errors.Is(err, lock.ErrBusy) {
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
// init script would hang or fail. restore undoes it. It takes the lock, so other processes that
// install packages wait, at most until their ctx ends.
func denyServiceStart(ctx context.Context) (restore func(), err error) {
	unlock, err := lock.Wait(ctx, lockFile(), installTimeout)
	if err != nil {
		return nil, fmt.Errorf("waiting for another testbed to finish installing packages: %w", err)
	}
	if Systemd() {
		return unlock, nil
	}
	remove, err := placePolicy(policyFile)
	if err != nil {
		unlock()
		return nil, err
	}
	return func() { remove(); unlock() }, nil
}

// placePolicy writes a policy that denies all service actions, see invoke-rc.d(8). It keeps a
// host's own policy. restore also removes one that an interrupted Install left.
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
