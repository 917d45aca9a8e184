package spec

import "slices"

// Kind is the kind of a fault.
type Kind string

// The kinds.
const (
	Status            Kind = "status"
	Latency           Kind = "latency"
	Hang              Kind = "hang"
	Slow              Kind = "slow"
	Reset             Kind = "reset"
	Truncate          Kind = "truncate"
	WrongBytes        Kind = "wrong-bytes"
	Credentials       Kind = "credentials"
	Refuse            Kind = "refuse"
	Blackhole         Kind = "blackhole"
	DNS               Kind = "dns"
	ExpiredTLS        Kind = "expired-tls"
	Stop              Kind = "stop"
	Kill              Kind = "kill"
	RecreateService   Kind = "recreate-service"
	DiskFull          Kind = "disk-full"
	KubeletStop       Kind = "kubelet-stop"
	ContainerdRestart Kind = "containerd-restart"
	Loss              Kind = "loss"
)

// Scope selects the requests to an upstream that a fault applies to.
type Scope string

// The scopes.
const (
	All       Scope = "all"
	Manifests Scope = "manifests"
	Blobs     Scope = "blobs"
)

var scopes = []Scope{Manifests, Blobs, All}

// Roles returns all roles in the order of the catalog.
func Roles() []Role {
	var all []Role
	for _, s := range shapes {
		if !slices.Contains(all, s.role) {
			all = append(all, s.role)
		}
	}
	return all
}

// Kinds returns the kinds of a role in the order of the catalog; none for an unknown role.
func Kinds(role Role) []Kind {
	var all []Kind
	for _, s := range shapes {
		if s.role == role {
			all = append(all, s.kind)
		}
	}
	return all
}

// shapeOf returns the shape of a kind of a role, or a *UseError.
func shapeOf(role Role, kind Kind) (shape, error) {
	for _, s := range shapes {
		if s.role == role && s.kind == kind {
			return s, nil
		}
	}
	return shape{}, misuse("%s has no fault %q, use one of %s", role, kind, list(Kinds(role)))
}

// EndsOnlyByCommand reports whether only a command can end the fault. No node can end it after a
// time by itself, so a process has to wait.
func (f Fault) EndsOnlyByCommand() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && s.endsOnlyByCommand
}

// OneShot reports whether the fault is a single action: it is not listed and cannot be cleared.
func (f Fault) OneShot() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && s.oneShot
}

// AppliedByUpstream reports whether the upstream itself applies the fault to its answers.
func (f Fault) AppliedByUpstream() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && (s.on != "" || s.kind == ExpiredTLS)
}
