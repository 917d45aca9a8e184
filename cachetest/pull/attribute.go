package pull

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Evidence is the input of Attribute: concurrent pulls of one image.
type Evidence struct {
	Image    Image
	Attempts []Attempt
	// Records are all requests to the upstream during the pulls, of any client and repository.
	Records accesslog.Records
	// LogProblem is why the access log could not be read, or "". If it is set, empty Records do not
	// mean that there were no requests.
	LogProblem string
}

// Attempt is one of the pulls.
type Attempt struct {
	Node    string
	Round   int
	Mirrors []string // as in Pull
	Before  State
	After   State
	Took    time.Duration
	Failure string // why the pull failed, or ""
}

// Findings are the output of Attribute.
type Findings struct {
	Pulls    []Pull
	Upstream Traffic
	Notes    []string
}

// Attribute finds who served each object of each pull. It assigns the requests of nodes to pulls by
// their source addresses. It cannot assign the requests of a cache, since the upstream's access log
// does not show for which node a cache fetched an object. A note names the affected nodes.
func Attribute(e Evidence) Findings {
	e.Records = e.Records.Repository(e.Image.Repository).Pulls()
	if len(e.Image.Objects) == 0 {
		e.Image.Objects = observedObjects(e)
	}
	found := Findings{Upstream: traffic(e.Records)}
	for _, attempt := range e.Attempts {
		found.Pulls = append(found.Pulls, e.pull(attempt))
	}
	markShared(found.Pulls)
	found.Notes = e.notes(found.Pulls)
	return found
}

func (e Evidence) pull(a Attempt) Pull {
	own := e.Records.By(accesslog.AskerNode).Filter(a.sent)
	pull := Pull{
		Node: a.Node, Round: a.Round, Seconds: float64(a.Took.Milliseconds()) / 1000, Mirrors: append([]string{}, a.Mirrors...),
		Fallback: len(own) > 0 && len(a.Mirrors) > 0, Objects: []Served{}, Error: a.Failure,
	}
	for _, object := range e.Image.Objects {
		served := e.serve(a, object, own)
		if by := served.By; by == CacheHit || by == CacheMiss || by == FromUpstream || by == Unknown {
			pull.Bytes += object.Size
		}
		pull.Objects = append(pull.Objects, served)
	}
	return pull
}

// serve finds who served one object. The first matching case counts. FromUpstream precedes
// FromNode: if the upstream sent the complete object to the node, the upstream is the source, even
// if the node already had the object.
func (e Evidence) serve(a Attempt, object Object, own accesslog.Records) Served {
	byNode := e.Image.gets(object, own)
	byCache := e.Image.gets(object, e.Records.By(accesslog.AskerCache))
	served := Served{
		Object: object, CacheGets: len(byCache), NodeGets: len(byNode), UpstreamBytes: byCache.Bytes() + byNode.Bytes(),
	}
	switch had := a.Before.holds(object); {
	case a.Failure != "" && !had && !a.After.holds(object):
		served.By = Missing
	case slices.ContainsFunc(byNode, complete):
		served.By = FromUpstream
	case had:
		served.By = FromNode
	case e.LogProblem != "", len(a.Mirrors) == 0:
		served.By = Unknown
	case slices.ContainsFunc(byCache, complete):
		served.By = CacheMiss
	default:
		served.By = CacheHit
	}
	return served
}

// gets returns the GET requests for an object. Clients may request the image's first object, the
// index or manifest, by tag.
func (i Image) gets(object Object, records accesslog.Records) accesslog.Records {
	return records.Gets().Filter(func(r accesslog.Record) bool {
		byTag := object.Digest == i.Digest() && r.Kind == accesslog.KindManifest && r.Reference == i.Identifier
		return r.Reference == object.Digest || byTag
	})
}

// complete reports whether the upstream sent the requested object or range.
func complete(r accesslog.Record) bool {
	return (r.Status == http.StatusOK || r.Status == http.StatusPartialContent) && !r.Aborted
}

func (a Attempt) sent(r accesslog.Record) bool {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.Contains(a.Before.Addresses, address.Addr().Unmap())
}

// observedObjects returns an image's objects if the upstream does not describe the image: the
// digests in requests to the upstream, and the digests that are new on a node.
func observedObjects(e Evidence) []Object {
	var objects []Object
	known := map[string]int{}
	add := func(object Object) {
		if i, found := known[object.Digest]; found {
			objects[i].Size = max(objects[i].Size, object.Size)
			return
		}
		known[object.Digest] = len(objects)
		objects = append(objects, object)
	}
	for _, r := range e.Records {
		if !strings.Contains(r.Reference, ":") { // a tag
			continue
		}
		part := PartBlob
		if r.Kind == accesslog.KindManifest {
			part = PartManifest
		}
		add(Object{Digest: r.Reference, Part: part, Size: r.Bytes})
	}
	for _, attempt := range e.Attempts {
		for _, digest := range slices.Sorted(maps.Keys(attempt.After.Content)) {
			if !attempt.Before.Content[digest] {
				add(Object{Digest: digest, Part: PartUnknown})
			}
		}
	}
	return objects
}

func traffic(records accesslog.Records) Traffic {
	caches, nodes := records.By(accesslog.AskerCache), records.By(accesslog.AskerNode)
	return Traffic{
		CacheGets: len(caches.Gets()), CacheHeads: len(caches.Heads()), NodeGets: len(nodes.Gets()), NodeHeads: len(nodes.Heads()),
		Bytes: caches.Bytes() + nodes.Bytes(),
	}
}

func (e Evidence) notes(pulls []Pull) []string {
	var notes []string
	if e.LogProblem != "" {
		notes = append(notes, "it is unknown who served new objects, because the upstream's access log could not be read: "+e.LogProblem)
	}
	nodes := map[string]bool{} // the nodes that share an object
	for _, pull := range pulls {
		if slices.ContainsFunc(pull.Objects, func(s Served) bool { return s.Shared }) {
			nodes[pull.Node] = true
		}
	}
	if len(nodes) > 0 {
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

// otherClients finds clients that are not caches or nodes of attempts, and counts their requests.
func (e Evidence) otherClients() (requests int, clients map[string]bool) {
	clients = map[string]bool{}
	for _, r := range e.Records {
		byAttempt := slices.ContainsFunc(e.Attempts, func(a Attempt) bool { return a.sent(r) })
		if r.Asker == accesslog.AskerCache || r.Asker == accesslog.AskerNode && byAttempt {
			continue
		}
		requests++
		client := r.RemoteAddr
		if address, err := netip.ParseAddrPort(client); err == nil {
			client = address.Addr().Unmap().String()
		}
		clients[r.UserAgent+" at "+client] = true
	}
	return requests, clients
}

func join(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}
