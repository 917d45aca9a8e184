// Package debian installs packages on a Debian or Ubuntu host without prompts. On a host without
// systemd, no service starts. Each installation first configures packages that an interrupted one
// left unconfigured.
//
// Callers decide which packages are needed and whether the host may be changed.
package debian
