package engine

import (
	"fmt"
	"strings"
)

// defaultEndpoint is where Docker's packages make the engine listen.
const defaultEndpoint = "unix:///var/run/docker.sock"

// host is what was seen on a host whose engine does not answer.
type host struct {
	client       bool     // the docker command is there
	daemon       bool     // dockerd is there
	endpoint     string   // where the docker command looks for the engine
	answer       string   // what it said
	listening    bool     // something accepts connections at the endpoint
	distribution string   // PRETTY_NAME of os-release
	debian       bool     // Debian, Ubuntu or a relative
	root         bool     // we are root
	systemd      bool     // systemd is the init system
	foreign      int      // process ID of a dockerd that somebody else started, if one runs
	lacking      []string // capabilities that the kernel knows and our bounding set lacks
}

// plan is how to get an engine.
type plan struct {
	install []string // packages
	systemd bool     // start it as a systemd service, else in a session of its own
	shim    bool     // by way of the OCI runtime shim
	lacking []string // why the shim is needed
}

// Missing says what is missing for a Docker Engine, and how to get it. It is an error of the environment (exit code 3).
type Missing struct {
	// What is missing, as one clause.
	What string
	// Fix is what a person can do about it, as one clause.
	Fix string
}

// EnvironmentError marks the error for internal/program.
func (m *Missing) EnvironmentError() {}

// Error is one line: what is missing; how to get it.
func (m *Missing) Error() string {
	return m.What + "; " + m.Fix
}

const installByHand = "install Docker Engine 20.10 or newer (https://docs.docker.com/engine/install/) and start it, or let DOCKER_HOST point to one"

// decide returns how to get an engine on this host, or what is missing.
func decide(h host) (plan, *Missing) {
	if missing := withheld(h); missing != nil {
		return plan{}, missing
	}
	switch {
	case !h.debian:
		return plan{}, &Missing{unreachable(h) + ", and it can be installed on Debian and Ubuntu only, not on " + h.distribution, installByHand}
	case !h.root:
		return plan{}, &Missing{unreachable(h) + ", and only root can install and start it", "run as root, or " + installByHand}
	}

	p := plan{systemd: h.systemd, shim: len(h.lacking) > 0, lacking: h.lacking}
	if !h.daemon || !h.client {
		p.install = []string{"docker.io"}
	}
	return p, nil
}

// withheld returns why an engine that is there, or that somebody chose, cannot be used; nil where neither is so.
func withheld(h host) *Missing {
	switch {
	case h.endpoint != defaultEndpoint:
		// Somebody chose this endpoint: an engine elsewhere is not what they asked for.
		return &Missing{unreachable(h) + reason(h),
			"start that engine, or unset DOCKER_HOST and select the default context (docker context use default)"}
	case h.listening && strings.Contains(h.answer, "permission denied"):
		return &Missing{"permission to use the docker engine at " + h.endpoint + " is missing",
			"run as root, or join the group: usermod -aG docker $USER, then log in again"}
	case h.listening && !h.client:
		return &Missing{"the docker command is missing, though something listens at " + h.endpoint,
			"install the client: apt-get install docker-cli, or docker.io where that package does not exist"}
	case h.foreign != 0:
		return &Missing{fmt.Sprintf("dockerd (process %d) runs but does not answer, and it was not started by a testbed", h.foreign) + reason(h),
			"look into its log and restart it"}
	}
	return nil
}

func unreachable(h host) string { return "no docker engine answers at " + h.endpoint }

func reason(h host) string {
	if !h.client {
		return " (there is no docker command to ask it)"
	}
	if h.answer == "" {
		return ""
	}
	return " (" + h.answer + ")"
}
