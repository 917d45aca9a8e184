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
	Token             Kind = "token"
	Profile           Kind = "profile"
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
func Roles() (all []Role) {
	for _, s := range shapes {
		if !slices.Contains(all, s.role) {
			all = append(all, s.role)
		}
	}
	return all
}

// Kinds returns the kinds of a role in the order of the catalog, or nil for an unknown role.
func Kinds(role Role) (all []Kind) {
	for _, s := range shapes {
		if s.role == role {
			all = append(all, s.kind)
		}
	}
	return all
}

func shapeOf(role Role, kind Kind) (shape, error) {
	for _, s := range shapes {
		if s.role == role && s.kind == kind {
			return s, nil
		}
	}
	return shape{}, usageErrorf("%s has no fault %q, use one of %s", role, kind, list(Kinds(role)))
}

// shape returns the shape of the fault, or the zero shape for an unknown fault.
func (f Fault) shape() shape {
	s, _ := shapeOf(f.Target.Role, f.Kind)
	return s
}

// EndsOnlyByCommand reports whether only a command can end the fault. Such a fault cannot end by
// itself after a duration, since no node can end it.
func (f Fault) EndsOnlyByCommand() bool { return f.shape().endsOnlyByCommand }

// OneShot reports whether the fault is a single action, which is not listed and cannot be deleted.
func (f Fault) OneShot() bool { return f.shape().oneShot }

// AppliedByUpstream reports whether the upstream itself applies the fault to its answers.
func (f Fault) AppliedByUpstream() bool {
	return f.shape().on != "" || f.Target.Role == Upstream && f.Kind == ExpiredTLS
}

type shape struct {
	role              Role
	kind              Kind
	means             string   // completes "the target ..."
	takes             []string // the options other than --for
	needs             string   // the required option
	on                Scope    // the default of Fault.On
	oneShot           bool     // see Fault.OneShot: the target recovers by itself
	endsOnlyByCommand bool     // see Fault.EndsOnlyByCommand
}

var shapes = []shape{
	{
		role: Upstream, kind: Status, takes: []string{"status", "header", "body", "on"}, needs: "status", on: All,
		means: "answers with --status, --header and --body",
	},
	{role: Upstream, kind: Latency, means: "answers after --delay", takes: []string{"delay", "on"}, needs: "delay", on: All},
	{role: Upstream, kind: Hang, means: "accepts requests and does not answer until the fault ends", takes: []string{"on"}, on: All},
	{
		role: Upstream, kind: Slow, takes: []string{"rate", "on"}, needs: "rate", on: Blobs,
		means: "sends each answer with --rate bytes per second",
	},
	{
		role: Upstream, kind: Reset, takes: []string{"after", "on"}, on: Blobs,
		means: "resets the connection after --after bytes of the body (default: half of it)",
	},
	{
		role: Upstream, kind: Truncate, takes: []string{"after", "on"}, on: Blobs,
		means: "answers 200 with the right length and truncates the body after --after bytes (default: half of it)",
	},
	{role: Upstream, kind: WrongBytes, means: "answers 200 with the right length and wrong content", takes: []string{"on"}, on: Blobs},
	{
		role: Upstream, kind: Credentials, takes: []string{"accept", "on"}, needs: "accept", on: All,
		means: "answers 401 unless a request has the credentials of --accept",
	},
	{role: Upstream, kind: Token, means: "requires a bearer token, which its token server gives to every client", on: All},
	{role: Upstream, kind: Profile, means: "answers like the registry --name", takes: []string{"name"}, needs: "name", on: All},
	{role: Upstream, kind: Refuse, means: "refuses connections of the shoot's nodes and pods, and resets open ones"},
	{role: Upstream, kind: Blackhole, means: "is unreachable for the shoot's nodes and pods: their packets are dropped"},
	{role: Upstream, kind: DNS, means: "has a host name that does not resolve in the shoot's nodes and pods: lookups fail at once"},
	{
		role: Upstream, kind: ExpiredTLS,
		means: "answers new HTTPS connections with a certificate that expired an hour ago; names and CA stay the same",
	},
	{role: Cache, kind: Status, takes: []string{"status"}, needs: "status", means: "answers everything that the shoot's nodes ask with --status"},
	{role: Cache, kind: ExpiredTLS, means: "shows the shoot's nodes a certificate of its CA that has expired"},
	{role: Cache, kind: Refuse, means: "refuses connections of the shoot's nodes, and resets open ones"},
	{role: Cache, kind: Blackhole, means: "is unreachable for the shoot's nodes: packets to its Service are dropped"},
	{
		role: Cache, kind: Stop,
		means: "accepts connections and does not answer (SIGSTOP), until its liveness probe restarts it after 2 minutes",
	},
	{role: Cache, kind: Kill, means: "loses its pods: they are deleted without a grace period, and recreated", oneShot: true},
	{
		role: Cache, kind: RecreateService, oneShot: true,
		means: "gets a new Service with another address, which nodes learn when the Shoot is reconciled",
	},
	{role: Cache, kind: DiskFull, means: "has a full volume: content can be read but not written, until its container restarts"},
	{role: Node, kind: KubeletStop, means: "has no running kubelet; on a worker, gardener-node-agent starts it again after a minute"},
	{role: Node, kind: ContainerdRestart, means: "restarts containerd", oneShot: true},
	{
		role: Node, kind: Loss, endsOnlyByCommand: true,
		means: "is lost, with its Node object; when the fault is deleted, it joins as a new node of the same name",
	},
	{role: Seed, kind: Stop, means: stoppedServer},
	{role: Seed, kind: Refuse, means: refusingServer},
	{role: Seed, kind: Latency, means: slowServer, takes: []string{"delay"}, needs: "delay"},
	{role: Shoot, kind: Stop, means: stoppedServer},
	{role: Shoot, kind: Refuse, means: refusingServer},
	{role: Shoot, kind: Latency, means: slowServer, takes: []string{"delay"}, needs: "delay"},
	{role: Extension, kind: Stop, means: "hangs (SIGSTOP) until its liveness probe restarts it"},
	{role: Extension, kind: Kill, means: "loses its pods: they are deleted without a grace period, and recreated", oneShot: true},
}

// The effects on an API server, of the seed or of the shoot.
const (
	stoppedServer  = "accepts connections and does not answer (SIGSTOP), until its liveness probe restarts it after minutes"
	refusingServer = "refuses connections from other nodes and from pods, and resets open ones"
	slowServer     = "answers other nodes and pods after --delay, and resets open connections"
)
