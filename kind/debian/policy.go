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

// Systemd tells whether systemd is this host's init system, as sd_booted(3) does.
func Systemd() bool {
	booted, err := os.Lstat("/run/systemd/system")
	return err == nil && booted.IsDir()
}

// Restore lets packages start services again where a killed Install has forbidden it for good. It does nothing where
// another process is in Install, and where the host's own policy, or none, lies.
func Restore() error {
	return removePolicy(policyFile, lockFile())
}

// lockFile is held while packages are installed.
func lockFile() string { return filepath.Join(lock.Directory(), "packages.lock") }

func removePolicy(policyFile, lockFile string) error {
	if present, err := os.ReadFile(policyFile); err != nil || string(present) != policy {
		return nil // not ours; what cannot be read is not ours either
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
		return fmt.Errorf("packages start no service while an interrupted run's %s is there (as root: rm %[1]s): %w", policyFile, err)
	}
	return nil
}

// denyServiceStart keeps package scripts from starting services where systemd does not run: an init script would hang or
// fail there. restore undoes it. Other processes that install packages wait for it, as long as ctx lasts.
func denyServiceStart(ctx context.Context) (restore func(), err error) {
	unlock, err := lock.Wait(ctx, lockFile(), installTimeout)
	if err != nil {
		return nil, fmt.Errorf("waiting for another testbed that installs packages: %w", err)
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

// placePolicy writes a policy that denies all, see invoke-rc.d(8). One of the host's own is left alone; one of ours that
// an interrupted run left is removed by restore.
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
