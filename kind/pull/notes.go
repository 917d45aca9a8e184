package pull

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// notes say what the evidence does not tell.
func (e Evidence) notes(pulls []Pull) []string {
	var notes []string
	if e.LogProblem != "" {
		notes = append(notes, "the upstream's access log could not be read, so what a node did not have before came from somewhere "+
			"unknown: "+e.LogProblem)
	}
	if digests, nodes := shared(pulls); len(digests) > 0 {
		notes = append(notes, fmt.Sprintf("shared: %s pulled at the same time, and the log does not tell for which of them the cache "+
			"fetched these objects: the others may have had them from its store", join(nodes)))
	}
	if requests, askers := e.strangers(); requests > 0 {
		notes = append(notes, fmt.Sprintf("meanwhile the upstream saw %s for the repository by others than the nodes that pulled here: %s",
			count(requests, "request"), join(askers)))
	}
	return notes
}

// markShared marks what a cache fetched while several nodes needed it.
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

// shared returns the digests of the objects that are marked, and the nodes that needed them.
func shared(pulls []Pull) (digests, nodes map[string]bool) {
	digests, nodes = map[string]bool{}, map[string]bool{}
	for _, pull := range pulls {
		for _, served := range pull.Objects {
			if served.Shared {
				digests[served.Digest], nodes[pull.Node] = true, true
			}
		}
	}
	return digests, nodes
}

// strangers counts the requests for the repository that neither a cache made nor a node that pulled here, and names who did.
func (e Evidence) strangers() (requests int, askers map[string]bool) {
	askers = map[string]bool{}
	for _, r := range e.Records {
		ours := slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return a.asked(r) })
		if r.Asker == accesslog.AskerCache || r.Asker == accesslog.AskerNode && ours {
			continue
		}
		requests++
		askers[r.UserAgent+" at "+hostOf(r.RemoteAddr)] = true
	}
	return requests, askers
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
