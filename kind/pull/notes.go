package pull

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// notes describe the limits of the evidence.
func (e Evidence) notes(pulls []Pull) []string {
	var notes []string
	if e.LogProblem != "" {
		notes = append(notes, "it is unknown who served new objects, because the upstream's access log could not be read: "+e.LogProblem)
	}
	if nodes := sharing(pulls); len(nodes) > 0 {
		notes = append(notes, fmt.Sprintf("shared: %s pulled concurrently; the cache fetched these objects for one of them, "+
			"and may have served the others from its store", join(nodes)))
	}
	if requests, clients := e.otherClients(); requests > 0 {
		notes = append(notes, fmt.Sprintf("the upstream also had %s for the repository from other clients: %s",
			count(requests, "request"), join(clients)))
	}
	return notes
}

// markShared marks objects that a cache fetched while several nodes needed them.
func markShared(pulls []Pull) {
	misses := map[string]int{}
	for _, pull := range pulls {
		for _, served := range pull.Objects {
			if served.By == CacheMiss {
				misses[served.Digest]++
			}
		}
	}
	for _, pull := range pulls {
		for i := range pull.Objects {
			served := &pull.Objects[i]
			served.Shared = served.By == CacheMiss && misses[served.Digest] > 1
		}
	}
}

// sharing returns the nodes that needed marked objects.
func sharing(pulls []Pull) map[string]bool {
	nodes := map[string]bool{}
	for _, pull := range pulls {
		if slices.ContainsFunc(pull.Objects, func(s Served) bool { return s.Shared }) {
			nodes[pull.Node] = true
		}
	}
	return nodes
}

// otherClients counts the requests for the repository that neither a cache nor a node of an attempt
// sent, and names their clients.
func (e Evidence) otherClients() (requests int, clients map[string]bool) {
	clients = map[string]bool{}
	for _, r := range e.Records {
		byAttempt := slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return a.sent(r) })
		if r.Asker == accesslog.AskerCache || r.Asker == accesslog.AskerNode && byAttempt {
			continue
		}
		requests++
		clients[r.UserAgent+" at "+hostOf(r.RemoteAddr)] = true
	}
	return requests, clients
}

func hostOf(remote string) string {
	if address, err := netip.ParseAddrPort(remote); err == nil {
		return address.Addr().Unmap().String()
	}
	return remote
}

func join(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}
