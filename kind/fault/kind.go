package fault

import "slices"

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
	Refuse            Kind = "refuse"
	Blackhole         Kind = "blackhole"
	Stop              Kind = "stop"
	Kill              Kind = "kill"
	KubeletStop       Kind = "kubelet-stop"
	ContainerdRestart Kind = "containerd-restart"
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

// shape is a kind that a role can have.
type shape struct {
	role Role
	kind Kind
	// means completes "the part ...".
	means string
	// takes are the options that it has beside --for, needs the one of them without which it means nothing.
	takes []string
	needs string
	// on is the scope unless another is asked for.
	on Scope
	// instant ones have no end: they happen, and what they broke mends itself.
	instant bool
}

var shapes = []shape{
	{
		role: Upstream, kind: Status,
		means: "answers with --status, --header and --body",
		takes: []string{"status", "header", "body", "on"}, needs: "status", on: All,
	},
	{
		role: Upstream, kind: Latency,
		means: "answers after --delay",
		takes: []string{"delay", "on"}, needs: "delay", on: All,
	},
	{
		role: Upstream, kind: Hang,
		means: "accepts requests and does not answer before the fault ends",
		takes: []string{"on"}, on: All,
	},
	{
		role: Upstream, kind: Slow,
		means: "sends each answer with --rate bytes a second",
		takes: []string{"rate", "on"}, needs: "rate", on: Blobs,
	},
	{
		role: Upstream, kind: Reset,
		means: "resets the connection after --after bytes of the body (half of it by default)",
		takes: []string{"after", "on"}, on: Blobs,
	},
	{
		role: Upstream, kind: Truncate,
		means: "answers 200 with the right length and ends after --after bytes (half by default)",
		takes: []string{"after", "on"}, on: Blobs,
	},
	{
		role: Upstream, kind: WrongBytes,
		means: "answers 200 with the right length and other content",
		takes: []string{"on"}, on: Blobs,
	},
	{
		role: Upstream, kind: Refuse,
		means: "refuses connections of the shoot's nodes and pods, and resets those that are open",
	},
	{role: Upstream, kind: Blackhole, means: "is out of reach of the shoot's nodes and pods: packets vanish"},
	{role: Cache, kind: Refuse, means: "refuses connections of the shoot's nodes, and resets those that are open"},
	{role: Cache, kind: Blackhole, means: "is out of reach of the shoot's nodes: packets to its Service vanish"},
	{
		role: Cache, kind: Stop,
		means: "accepts connections and does not answer (SIGSTOP), at most until its liveness probe restarts it, after 2 minutes",
	},
	{role: Cache, kind: Kill, means: "has its pods deleted, at once; they come back", instant: true},
	{
		role: Node, kind: KubeletStop,
		means: "has no kubelet; on a worker, gardener-node-agent starts it again after a minute",
	},
	{role: Node, kind: ContainerdRestart, means: "restarts containerd", instant: true},
}

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

// Instant says that the fault happens and is over: it is not listed and cannot be cleared.
func (f Fault) Instant() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && s.instant
}

// OfAnswers says that the fault is one of an upstream's answers, which the upstream itself gives.
func (f Fault) OfAnswers() bool {
	s, err := shapeOf(f.Target.Role, f.Kind)
	return err == nil && s.on != ""
}
