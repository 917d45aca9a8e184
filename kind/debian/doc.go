// Package debian installs packages on a Debian or Ubuntu host, unattended: nothing prompts, no
// service starts on a host without systemd, and each run first finishes what an interrupted run
// left half configured.
//
// It must not know what the packages are for, and does not decide whether the host may be changed.
package debian
