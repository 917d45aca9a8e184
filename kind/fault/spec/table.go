package spec

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Kind names what a fault does.
type Kind string

// The kinds.
const (
	Status          Kind = "status"
	Hang            Kind = "hang"
	Slow            Kind = "slow"
	Truncate        Kind = "truncate"
	Credentials     Kind = "credentials"
	Token           Kind = "token"
	Profile         Kind = "profile"
	Refuse          Kind = "refuse"
	Blackhole       Kind = "blackhole"
	ExpiredTLS      Kind = "expired-tls"
	Stop            Kind = "stop"
	Kill            Kind = "kill"
	RecreateService Kind = "recreate-service"
	DiskFull        Kind = "disk-full"
	Loss            Kind = "loss"
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

// Argument selects what package fault passes to the function of a fault in node.sh.
type Argument string

// The arguments. Faults with none of them have their own code.
const (
	Addresses Argument = "addresses" // the IP addresses of the target, on each node of the shoot
	Pods      Argument = "pods"      // the target's pods as <namespace>/<name>, on their nodes
	Volumes   Argument = "volumes"   // volumes of these pods as <pod>=<path in the container>, on the pods' nodes
)

// definition describes a fault and what applies it: the upstream (on), or a function of node.sh on
// nodes (method, argument). A one-shot fault has no end, since the target recovers by itself.
type definition struct {
	role     Role
	kind     Kind
	effect   string   // completes "the target …", see Fault.Effect
	takes    []string // the options other than --for
	needs    string   // the required option
	on       Scope    // the default of Fault.On; set if the upstream itself applies the fault
	method   string   // the function fault_<method> of node.sh
	argument Argument
	oneShot  bool // see Fault.OneShot
}

// table lists all faults. A new fault needs an entry here, and a function in node.sh or a case in
// package server.
var table = []definition{
	{role: Upstream, kind: Status, effect: "answers {status} to {requests}", takes: []string{"status", "header", "body", "on"}, needs: "status", on: All},
	{role: Upstream, kind: Hang, effect: "accepts and never answers {requests}", takes: []string{"on"}, on: All},
	{role: Upstream, kind: Slow, effect: "answers {requests} with {rate} bytes per second", takes: []string{"rate", "on"}, needs: "rate", on: Blobs},
	{role: Upstream, kind: Truncate, effect: "truncates the answer to {requests} after {after}", takes: []string{"after", "on"}, on: Blobs},
	{role: Upstream, kind: Credentials, effect: "requires credentials for {requests}", takes: []string{"accept", "on"}, needs: "accept", on: All},
	{role: Upstream, kind: Token, effect: "requires a bearer token, which its token server gives to every client", on: All},
	{role: Upstream, kind: Profile, effect: "answers like {name}", takes: []string{"name"}, needs: "name", on: All},
	{role: Upstream, kind: Refuse, effect: "refuses connections of the shoot's nodes and pods, and resets open ones", method: "reject", argument: Addresses},
	{role: Upstream, kind: Blackhole, effect: "is unreachable for the shoot's nodes and pods: their packets are dropped", method: "drop", argument: Addresses},

	{role: Cache, kind: Status, effect: "answers {status} to the shoot's nodes", takes: []string{"status"}, needs: "status", method: "answer"},
	{role: Cache, kind: ExpiredTLS, effect: "shows the shoot's nodes an expired certificate", method: "answer"},
	{role: Cache, kind: Refuse, effect: "refuses connections of the shoot's nodes, and resets open ones", method: "reject", argument: Addresses},
	{role: Cache, kind: Blackhole, effect: "is unreachable for the shoot's nodes: packets to its Service are dropped", method: "drop", argument: Addresses},
	{role: Cache, kind: Stop, effect: "accepts connections and does not answer", method: "stop", argument: Pods},
	{role: Cache, kind: DiskFull, effect: "has a full volume", method: "full", argument: Volumes},
	{role: Cache, kind: Kill, effect: "loses its pods: they are deleted without a grace period, and recreated", oneShot: true},
	{role: Cache, kind: RecreateService, effect: "has a new Service", oneShot: true},

	{role: Node, kind: Loss, effect: "is lost, with its Node object", method: "loss"},
}

// Roles returns the roles that have faults.
func Roles() (all []Role) {
	for _, d := range table {
		if !slices.Contains(all, d.role) {
			all = append(all, d.role)
		}
	}
	return all
}

// Kinds returns the kinds of a role in the order of the table, or nil if it has no faults.
func Kinds(role Role) (all []Kind) {
	for _, d := range table {
		if d.role == role {
			all = append(all, d.kind)
		}
	}
	return all
}

func definitionOf(role Role, kind Kind) (definition, error) {
	for _, d := range table {
		if d.role == role && d.kind == kind {
			return d, nil
		}
	}
	return definition{}, usageErrorf("%s has no fault %q, use one of %s", role, kind, list(Kinds(role)))
}

// definition returns the definition of the fault, or the zero value for an unknown fault.
func (f Fault) definition() definition {
	d, _ := definitionOf(f.Target.Role, f.Kind)
	return d
}

// OneShot reports whether the fault is a single action, which is not listed and cannot be deleted.
func (f Fault) OneShot() bool { return f.definition().oneShot }

// AppliedByUpstream reports whether the upstream itself applies the fault to its answers.
func (f Fault) AppliedByUpstream() bool { return f.definition().on != "" }

// Method returns the function of node.sh that applies the fault on a node, and its argument.
func (f Fault) Method() (string, Argument) { return f.definition().method, f.definition().argument }

// Catalog lists all targets and kinds for a help text.
func Catalog() string {
	var text strings.Builder
	writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	words := strings.NewReplacer("{requests}", "requests", "{", "--", "}", "")
	for _, d := range table {
		fmt.Fprintf(writer, "  %s\t%s\t%s\n", Target{d.role, "…"}, d.kind, words.Replace(d.effect))
	}
	_ = writer.Flush() // a strings.Builder does not fail
	return text.String()
}
