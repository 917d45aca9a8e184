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

// Evidence is the input of Attribute: one pull of an image on a node.
type Evidence struct {
	Image   Image
	Node    string
	Mirrors []string // as in Pull
	Before  State
	After   State
	Took    time.Duration
	Failure string // why the pull failed, or ""
	// Records are all requests to the upstream during the pull, of any client and repository.
	Records accesslog.Records
	// LogProblem is why the access log could not be read, or "". If it is set, empty Records do not
	// mean that there were no requests.
	LogProblem string
}

// Findings are the output of Attribute.
type Findings struct {
	Pull     Pull
	Upstream Traffic
	Notes    []string
}

// Attribute returns who served each object of the pull. It tells the requests of the node from
// those of others by their source addresses.
func Attribute(e Evidence) Findings {
	e.Records = e.Records.Repository(e.Image.Repository).Pulls()
	if len(e.Image.Objects) == 0 {
		e.Image.Objects = e.observedObjects()
	}
	return Findings{Pull: e.pull(), Upstream: traffic(e.Records), Notes: e.notes()}
}

func (e Evidence) pull() Pull {
	own := e.Records.By(accesslog.AskerNode).Filter(e.sent)
	pull := Pull{
		Node: e.Node, Seconds: float64(e.Took.Milliseconds()) / 1000, Mirrors: append([]string{}, e.Mirrors...),
		Fallback: len(own) > 0 && len(e.Mirrors) > 0, Objects: []Served{}, Error: e.Failure,
	}
	for _, object := range e.Image.Objects {
		served := e.serve(object, own)
		if by := served.By; by == CacheHit || by == CacheMiss || by == FromUpstream || by == Unknown {
			pull.Bytes += object.Size
		}
		pull.Objects = append(pull.Objects, served)
	}
	return pull
}

// serve returns who served one object. The first matching case counts. FromUpstream precedes
// FromNode: if the upstream sent the complete object to the node, the upstream is the source, even
// if the node already had the object.
func (e Evidence) serve(object Object, own accesslog.Records) Served {
	byNode := e.Image.gets(object, own)
	byCache := e.Image.gets(object, e.Records.By(accesslog.AskerCache))
	served := Served{
		Object: object, CacheGets: len(byCache), NodeGets: len(byNode), UpstreamBytes: byCache.Bytes() + byNode.Bytes(),
	}
	switch had := e.Before.holds(object); {
	case e.Failure != "" && !had && !e.After.holds(object):
		served.By = Missing
	case slices.ContainsFunc(byNode, complete):
		served.By = FromUpstream
	case had:
		served.By = FromNode
	case e.LogProblem != "", len(e.Mirrors) == 0:
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

// complete reports whether the upstream sent the whole requested object or range.
func complete(r accesslog.Record) bool {
	return (r.Status == http.StatusOK || r.Status == http.StatusPartialContent) && !r.Aborted
}

// sent reports whether the node sent the request.
func (e Evidence) sent(r accesslog.Record) bool {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.Contains(e.Before.Addresses, address.Addr().Unmap())
}

// observedObjects returns an image's objects if the upstream does not describe the image: the
// digests in requests to the upstream, and the digests that are new on the node.
func (e Evidence) observedObjects() []Object {
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
	for _, digest := range slices.Sorted(maps.Keys(e.After.Content)) {
		if !e.Before.Content[digest] {
			add(Object{Digest: digest, Part: PartUnknown})
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

// notes describes the limits of the evidence: no access log, or requests of clients that are
// neither caches nor the node.
func (e Evidence) notes() []string {
	var notes []string
	if e.LogProblem != "" {
		notes = append(notes, "it is unknown who served new objects, because the upstream's access log could not be read: "+e.LogProblem)
	}
	requests, clients := 0, map[string]bool{}
	for _, r := range e.Records {
		if r.Asker == accesslog.AskerCache || r.Asker == accesslog.AskerNode && e.sent(r) {
			continue
		}
		requests++
		client := r.RemoteAddr
		if address, err := netip.ParseAddrPort(client); err == nil {
			client = address.Addr().Unmap().String()
		}
		clients[r.UserAgent+" at "+client] = true
	}
	if requests > 0 {
		notes = append(notes, fmt.Sprintf("the upstream also had %s for the repository from other clients: %s",
			count(requests, "request"), strings.Join(slices.Sorted(maps.Keys(clients)), ", ")))
	}
	return notes
}
