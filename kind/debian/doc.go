// Package debian installs packages on a Debian or Ubuntu host, unattended: nothing asks, nothing starts a service where
// there is no init system, and a run heals what an interrupted one has left half done.
//
// It must not know what the packages are for, nor decide whether the host may be changed.
package debian
