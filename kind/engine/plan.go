package engine

import (
	"fmt"
	"strings"
)

// defaultEndpoint is where Docker's packages make the engine listen.
const defaultEndpoint = "unix:///var/run/docker.sock"

// host is the state of a host whose engine does not answer.
type host struct {
	client    bool   // the docker command exists
	daemon    bool   // dockerd exists
	endpoint  string // the docker command's endpoint
	answer    string // why the engine cannot be used
	listening bool   // something accepts connections at the endpoint
	apt       bool   // apt-get exists: Debian, Ubuntu or derived from them
	root      bool   // this process is root
	systemd   bool   // systemd is the init system
	unmanaged int    // process ID of a running dockerd that no testbed started, or 0
}

// Missing reports why there is no usable Docker Engine, and how to get one. It is an environment
// error (exit code 3).
type Missing struct {
	What string // the problem, as one clause
	Fix  string // how the user can fix the problem, as one clause
}

// EnvironmentError marks the error as an environment error, see internal/program.
func (m *Missing) EnvironmentError() {}

// Error returns one line: what is missing; how to fix it.
func (m *Missing) Error() string { return m.What + "; " + m.Fix }

const installByHand = "install Docker Engine 20.10 or newer (https://docs.docker.com/engine/install/) and start it, " +
	"or set DOCKER_HOST to a running one"

// decide returns why Ensure cannot install or start an engine on this host, or nil.
func decide(h host) *Missing {
	missing := unusable(h)
	switch {
	case missing != nil:
		return missing
	case !h.apt:
		return &Missing{unreachable(h) + ", and without apt-get none can be installed", installByHand}
	case !h.root:
		return &Missing{unreachable(h) + ", and only root can install and start it", "run as root, or " + installByHand}
	}
	return nil
}

// unusable returns why a chosen or running engine cannot be used, or nil if there is none.
func unusable(h host) *Missing {
	switch {
	case h.endpoint != defaultEndpoint:
		// The user chose this endpoint and did not ask for an engine elsewhere.
		return &Missing{unreachable(h) + reason(h),
			"start that engine, or unset DOCKER_HOST and select the default context (docker context use default)"}
	case h.listening && strings.Contains(h.answer, "permission denied"):
		return &Missing{"no permission to use the docker engine at " + h.endpoint,
			"run as root, or join the docker group (usermod -aG docker $USER) and log in again"}
	case h.listening && !h.client:
		return &Missing{"the docker command is missing, but something listens at " + h.endpoint,
			"install the client: apt-get install docker-cli, or docker.io where that package does not exist"}
	case h.unmanaged != 0:
		return &Missing{fmt.Sprintf("dockerd (process %d) runs but does not answer, and no testbed started it", h.unmanaged) + reason(h),
			"check its log and restart it"}
	}
	return nil
}

func unreachable(h host) string { return "no docker engine answers at " + h.endpoint }

func reason(h host) string {
	if !h.client {
		return " (the docker command is missing)"
	}
	if h.answer == "" {
		return ""
	}
	return " (" + h.answer + ")"
}

// revive decides what to do about an engine that does not answer. If start is true, Ensure started
// the engine and it has died since. If an engine may be running, missing describes what the user
// must do. If neither is set, there is no engine on this host.
func revive(h host, managed bool) (start bool, missing *Missing) {
	if missing := unusable(h); missing != nil {
		return false, missing
	}
	missing = decide(h)
	switch {
	case managed && h.daemon && missing != nil:
		// The containers of a killed dockerd keep running.
		return false, missing
	case managed && h.daemon && h.client:
		return true, nil
	case h.listening:
		return false, &Missing{"something listens at " + h.endpoint + " but does not answer like a docker engine" + reason(h),
			"check the log of dockerd and restart it"}
	}
	return false, nil
}
