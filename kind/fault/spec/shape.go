package spec

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
	// tended ones end only by a command, see Fault.Tended.
	tended bool
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
		role: Upstream, kind: Credentials,
		means: "asks for credentials, and answers 401 to who does not show those of --accept",
		takes: []string{"accept", "on"}, needs: "accept", on: All,
	},
	{
		role: Upstream, kind: Refuse,
		means: "refuses connections of the shoot's nodes and pods, and resets those that are open",
	},
	{role: Upstream, kind: Blackhole, means: "is out of reach of the shoot's nodes and pods: packets vanish"},
	{role: Upstream, kind: DNS, means: "has a name that does not resolve in the shoot's nodes and pods: who asks for it is refused at once"},
	{
		role: Upstream, kind: ExpiredTLS,
		means: "shows new HTTPS connections a certificate that ended an hour ago, of the same names and authority",
	},
	{role: Cache, kind: Refuse, means: "refuses connections of the shoot's nodes, and resets those that are open"},
	{role: Cache, kind: Blackhole, means: "is out of reach of the shoot's nodes: packets to its Service vanish"},
	{
		role: Cache, kind: Stop,
		means: "accepts connections and does not answer (SIGSTOP), at most until its liveness probe restarts it, after 2 minutes",
	},
	{role: Cache, kind: Kill, means: "has its pods deleted, at once; they come back", instant: true},
	{
		role: Cache, kind: RecreateService, instant: true,
		means: "has its Service deleted; it comes back with another address, of which nodes learn when the Shoot is reconciled",
	},
	{
		role: Cache, kind: DiskFull,
		means: "has no byte left in its volume: what is stored can be read, nothing can be written, until its container restarts at most",
	},
	{
		role: Node, kind: KubeletStop,
		means: "has no kubelet; on a worker, gardener-node-agent starts it again after a minute",
	},
	{role: Node, kind: ContainerdRestart, means: "restarts containerd", instant: true},
	{
		role: Node, kind: Loss, tended: true,
		means: "is a machine that is gone, with its Node object; cleared, it joins as a fresh one of the same name",
	},
	{role: Node, kind: ClockSkew, means: "has another time; not to be had where nodes are containers"},
	{role: Seed, kind: Stop, means: stoppedServer},
	{role: Seed, kind: Refuse, means: refusingServer},
	{role: Seed, kind: Latency, means: lateServer, takes: []string{"delay"}, needs: "delay"},
	{role: Shoot, kind: Stop, means: stoppedServer},
	{role: Shoot, kind: Refuse, means: refusingServer},
	{role: Shoot, kind: Latency, means: lateServer, takes: []string{"delay"}, needs: "delay"},
	{
		role: Extension, kind: Stop,
		means: "does nothing any more (SIGSTOP), at most until its liveness probe restarts it",
	},
	{role: Extension, kind: Kill, means: "has its pods deleted, at once; they come back", instant: true},
}

// What happens to an API server, of the seed or of the shoot.
const (
	stoppedServer  = "accepts connections and does not answer (SIGSTOP), at most until its liveness probe restarts it, after minutes"
	refusingServer = "refuses connections of all but its own node, and resets those that are open"
	lateServer     = "answers after --delay, all but its own node; connections that are open are reset"
)
