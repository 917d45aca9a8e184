package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// denyServiceStart keeps package scripts from starting services where systemd does not run: an init script would hang or
// fail there. restore undoes it.
func denyServiceStart() (restore func(), err error) {
	if Systemd() {
		return func() {}, nil
	}
	return placePolicy(policyFile)
}

// placePolicy writes a policy that denies all, see invoke-rc.d(8). One of the host's own is left alone; one of ours that
// an interrupted run left is removed by restore.
func placePolicy(file string) (restore func(), err error) {
	present, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.WriteFile(file, []byte(policy), 0o755); err != nil {
			return nil, fmt.Errorf("keeping packages from starting services: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("keeping packages from starting services: %w", err)
	case string(present) != policy:
		return func() {}, nil
	}
	return func() { _ = os.Remove(file) }, nil
}
