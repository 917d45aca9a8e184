package pull

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Source names who served an object to a node.
type Source string

// The sources of an object.
const (
	FromNode     Source = "node"       // the node already had it
	CacheHit     Source = "cache hit"  // a cache had it and did not fetch it from the upstream
	CacheMiss    Source = "cache miss" // a cache fetched it from the upstream
	FromUpstream Source = "upstream"   // the node fetched it from the upstream
	Missing      Source = "missing"    // the pull failed and the node does not have the complete object
	Unknown      Source = "unknown"    // the node got it, and the evidence does not show from where
)

// Report is the output of `testbed pull`.
type Report struct {
	Image  string `json:"image"`
	Digest string `json:"digest,omitempty"`
	Pulls  []Pull `json:"pulls"`
	Total  Total  `json:"total"`
	// Verdict tells who served the objects, how many pulls failed, or why a node bypassed the cache.
	Verdict string   `json:"verdict,omitempty"`
	Notes   []string `json:"notes,omitempty"` // the limits of the evidence
}

// Pull is one pull on one node.
type Pull struct {
	Node    string  `json:"node"`
	Seconds float64 `json:"seconds"` // measured on the node
	Bytes   int64   `json:"bytes"`   // of all objects that the node fetched
	// Mirrors are the URLs of caches in the node's hosts.toml for the upstream, in order. Without
	// mirrors, the node uses the upstream directly, which is not a fallback.
	Mirrors []string `json:"mirrors"`
	// Fallback means that the node sent requests to the upstream although it has a mirror.
	Fallback bool     `json:"fallback"`
	Objects  []Served `json:"objects"`
	Error    string   `json:"error,omitempty"` // the message of the container runtime, or "" on success
}

// Served is an object of a pull and its source.
type Served struct {
	Object
	By Source `json:"servedBy"`
	// CacheGets and NodeGets count the GET requests of caches and of this node to the upstream, with
	// any status. UpstreamBytes is the size of the responses to these requests.
	CacheGets     int   `json:"cacheGets"`
	NodeGets      int   `json:"nodeGets"`
	UpstreamBytes int64 `json:"upstreamBytes"`
}

// Total summarizes all pulls.
type Total struct {
	Failed    int     `json:"failed"`
	Fallbacks int     `json:"fallbacks"`
	Slowest   float64 `json:"slowestSeconds"`
	// Upstream counts the requests for the image's repository, each once.
	Upstream Traffic `json:"upstream"`
}

// Traffic counts the requests to the upstream for manifests and blobs, and the bytes it sent.
type Traffic struct {
	CacheGets  int   `json:"cacheGets"`
	CacheHeads int   `json:"cacheHeads"`
	NodeGets   int   `json:"nodeGets"`
	NodeHeads  int   `json:"nodeHeads"`
	Bytes      int64 `json:"bytes"`
}

// NewReport returns a report without pulls.
func NewReport(image Image) *Report {
	report := &Report{Image: image.Reference, Digest: image.Digest(), Pulls: []Pull{}}
	if image.Problem != "" {
		report.Notes = append(report.Notes, "the image's manifest or config could not be read, so only transferred objects are listed, "+
			"and the sizes of cache hits are unknown: "+image.Problem)
	}
	return report
}

// Add adds the findings of a pull. It skips notes that the report already has.
func (r *Report) Add(findings Findings) {
	r.Pulls = append(r.Pulls, findings.Pull)
	r.Total.add(findings.Pull)
	r.Total.Upstream.add(findings.Upstream)
	for _, note := range findings.Notes {
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
}

func (t *Total) add(pull Pull) {
	if pull.Error != "" {
		t.Failed++
	}
	if pull.Fallback {
		t.Fallbacks++
	}
	t.Slowest = max(t.Slowest, pull.Seconds)
}

func (t *Traffic) add(other Traffic) {
	t.CacheGets += other.CacheGets
	t.CacheHeads += other.CacheHeads
	t.NodeGets += other.NodeGets
	t.NodeHeads += other.NodeHeads
	t.Bytes += other.Bytes
}

// Err returns an error with the nodes and messages of all failed pulls, or nil.
func (r *Report) Err() error {
	var failed []string
	for _, pull := range r.Pulls {
		if pull.Error != "" {
			failed = append(failed, fmt.Sprintf("on %s: %s", pull.Node, pull.Error))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d pulls of %s failed: %s", len(failed), len(r.Pulls), r.Image, strings.Join(failed, "; "))
}

// stallSeconds is the duration above which a pull that bypasses the cache counts as stalled.
const stallSeconds = 5

// verdict returns the Verdict, or "" without pulls. caches are <host>:<port> of the image's caches.
func (r *Report) verdict(caches []string) string {
	if len(r.Pulls) == 0 {
		return ""
	}
	if r.Total.Failed > 0 {
		return fmt.Sprintf("failed: %d of %s", r.Total.Failed, count(len(r.Pulls), "pull"))
	}
	bypassed := slices.DeleteFunc(slices.Clone(r.Pulls), func(p Pull) bool { return !p.Fallback })
	if len(bypassed) > 0 {
		slowest := slices.MaxFunc(bypassed, func(a, b Pull) int { return cmp.Compare(a.Seconds, b.Seconds) })
		return r.bypassVerdict(slowest, caches)
	}
	if i := slices.IndexFunc(r.Pulls, func(p Pull) bool { return len(p.Mirrors) == 0 }); i >= 0 {
		return fmt.Sprintf("direct: %s has no mirror for the upstream", r.Pulls[i].Node)
	}
	hits, misses := r.served(CacheHit), r.served(CacheMiss)
	if hits+misses == 0 {
		return "nothing to fetch: the nodes already had the image"
	}
	return fmt.Sprintf("served by the cache: %s from its store, %d fetched from the upstream, slowest pull %.1fs",
		count(hits, "object"), misses, r.Total.Slowest)
}

// served returns how many objects of all pulls have the source.
func (r *Report) served(by Source) (objects int) {
	for _, pull := range r.Pulls {
		for _, served := range pull.Objects {
			if served.By == by {
				objects++
			}
		}
	}
	return objects
}

// bypassVerdict returns the verdict if a node used the upstream although it has a mirror. p is the
// slowest such pull.
func (r *Report) bypassVerdict(p Pull, caches []string) string {
	word := "cache bypassed"
	if r.Total.Slowest > stallSeconds {
		word = "pulls stall"
	}
	mirrors := strings.Join(p.Mirrors, ", ")
	isCache := func(mirror string) bool {
		parsed, err := url.Parse(mirror)
		return err == nil && slices.Contains(caches, parsed.Host)
	}
	var why string
	switch {
	case caches == nil || slices.ContainsFunc(p.Mirrors, isCache):
		// The mirrors are from hosts.toml, which containerd might not have read.
		why = fmt.Sprintf("%s used the upstream: its mirror %s did not serve everything, or was not asked", p.Node, mirrors)
	case len(caches) == 0:
		why = fmt.Sprintf("%s asks %s before the upstream, but the upstream has no cache now", p.Node, mirrors)
	default:
		why = fmt.Sprintf("%s asks %s before the upstream, but the cache is now at %s", p.Node, mirrors, strings.Join(caches, ", "))
	}
	return fmt.Sprintf("%s: %s; slowest pull %.1fs, %s of %s", word, why, r.Total.Slowest, count(r.Total.Fallbacks, "fallback"),
		count(len(r.Pulls), "pull"))
}
