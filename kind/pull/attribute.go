package pull

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Evidence is what is known of pulls of one image at the same time.
type Evidence struct {
	Image    Image
	Attempts []Attempt
	// Records are what the upstream was asked from before the first pull until all had ended, by anybody and for any
	// repository.
	Records accesslog.Records
	// LogProblem says why there are no Records; without it, none means that nobody asked.
	LogProblem string
}

// Attempt is one of the pulls: where, and what was seen there.
type Attempt struct {
	Node    string
	Round   int
	Mirrors []string // the caches that the node asks, see Pull
	Before  State
	After   State
	Took    time.Duration
	Failure string // why it failed, empty if it did not
}

// Findings are what Evidence shows.
type Findings struct {
	Pulls    []Pull
	Upstream Traffic
	Notes    []string
}

// Attribute tells who served each object of each pull. A node's own requests are told apart by the address that they came from.
// Those of a cache are not: the log does not say for whom a cache asks, and this says so where it matters.
func Attribute(e Evidence) Findings {
	e.Records = e.Records.Repository(e.Image.Repository).Pulls()
	if len(e.Image.Objects) == 0 {
		e.Image.Objects = observed(e)
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
	own := e.Records.By(accesslog.AskerNode).Filter(a.asked)
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

// serve decides. The first case that holds counts: that a node asked the upstream and got an answer does not prove that it kept
// it, but what it kept it has from there; only then does it matter what it had before, and what caches asked for.
func (e Evidence) serve(a Attempt, object Object, own accesslog.Records) Served {
	byNode := e.Image.gets(object, own)
	byCache := e.Image.gets(object, e.Records.By(accesslog.AskerCache))
	served := Served{
		Object: object, CacheGets: len(byCache), NodeGets: len(byNode), UpstreamBytes: byCache.Bytes() + byNode.Bytes(),
	}
	switch had := a.Before.holds(object); {
	case a.Failure != "" && !had && !a.After.holds(object):
		served.By = Missing
	case slices.ContainsFunc(byNode, whole):
		served.By = FromUpstream
	case had:
		served.By = FromNode
	case e.LogProblem != "", len(a.Mirrors) == 0:
		served.By = Unknown
	case slices.ContainsFunc(byCache, whole):
		served.By = CacheMiss
	default:
		served.By = CacheHit
	}
	return served
}

// gets are the GET requests for an object. The first one, index or manifest, is also asked for by its tag.
func (i Image) gets(object Object, records accesslog.Records) accesslog.Records {
	return records.Gets().Filter(func(r accesslog.Record) bool {
		byTag := object.Digest == i.Digest() && r.Kind == accesslog.KindManifest && r.Reference == i.Identifier
		return r.Reference == object.Digest || byTag
	})
}

// whole says that the upstream answered with what was asked for, or with the part that was asked for.
func whole(r accesslog.Record) bool {
	return (r.Status == http.StatusOK || r.Status == http.StatusPartialContent) && !r.Aborted
}

// asked says whether the request came from the node.
func (a Attempt) asked(r accesslog.Record) bool {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.Contains(a.Before.Addresses, address.Addr().Unmap())
}

// observed are the objects of an image that was not described: what the upstream was asked for by digest, and what is new on a
// node.
func observed(e Evidence) []Object {
	var objects []Object
	known := map[string]int{}
	add := func(object Object) {
		i, found := known[object.Digest]
		if !found {
			known[object.Digest] = len(objects)
			objects = append(objects, object)
			return
		}
		objects[i].Size = max(objects[i].Size, object.Size)
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
		var arrived []string
		for digest := range attempt.After.Content {
			if !attempt.Before.Content[digest] {
				arrived = append(arrived, digest)
			}
		}
		slices.Sort(arrived)
		for _, digest := range arrived {
			add(Object{Digest: digest, Part: PartUnknown})
		}
	}
	return objects
}

// traffic counts the requests of caches and nodes.
func traffic(records accesslog.Records) Traffic {
	caches, nodes := records.By(accesslog.AskerCache), records.By(accesslog.AskerNode)
	return Traffic{
		CacheGets: len(caches.Gets()), CacheHeads: len(caches.Heads()), NodeGets: len(nodes.Gets()), NodeHeads: len(nodes.Heads()),
		Bytes: caches.Bytes() + nodes.Bytes(),
	}
}
