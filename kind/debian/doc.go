// Package debian installs packages on a Debian or Ubuntu host without prompts. On a host without
// systemd, no service starts. Each run first configures packages that an interrupted run left
// unconfigured.
//
// It must not know why the packages are needed. Callers decide whether the host may be changed.
package debian
