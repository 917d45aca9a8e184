package spec

import (
	"slices"
)

// Kind says how a part is broken.
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
	ClockSkew         Kind = "clock-skew"
)

// Scope is which requests to an upstream are hit.
type Scope string

// The scopes.
const (
	All       Scope = "all"
	Manifests Scope = "manifests"
	Blobs     Scope = "blobs"
)

var scopes = []Scope{Manifests, Blobs, All}

func roles() []Role {
	var all []Role
	for _, s := range shapes {
		if !slices.Contains(all, s.role) {
			all = append(all, s.role)
		}
	}
	return all
}

// shapeOf is what is known of a kind of fault of the role.
func shapeOf(role Role, kind Kind) (shape, error) {
	var known []Kind
	for _, s := range shapes {
		if s.role == role && s.kind == kind {
			return s, nil
		}
		if s.role == role {
			known = append(known, s.kind)
		}
	}
	return shape{}, misuse("%s has no fault %q; it has %s", role, kind, list(known))
}

// Tended says that the fault ends only by a command: no node can end it alone, so a time for it needs somebody who waits.
func (f Fault) Tended() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && s.tended
}

// Instant says that the fault happens and is over: it is not listed and cannot be cleared.
func (f Fault) Instant() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && s.instant
}

// OfAnswers says that the fault is one of an upstream's answers, which the upstream itself gives.
func (f Fault) OfAnswers() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && (s.on != "" || s.kind == ExpiredTLS)
}
