package pull

import (
	"fmt"
	"strings"
)

// Source says who served an object to a node.
type Source string

// The sources of an object.
const (
	// FromNode: nobody had to, it was there before.
	FromNode Source = "node"
	// CacheHit: the node did not have it and has it now, and nobody fetched it from the upstream meanwhile.
	CacheHit Source = "cache hit"
	// CacheMiss: a cache fetched it from the upstream for this pull.
	CacheMiss Source = "cache miss"
	// FromUpstream: the node itself fetched it from the upstream.
	FromUpstream Source = "upstream"
	// Missing: the pull failed, and the node does not have it afterwards, whether or not something was sent.
	Missing Source = "missing"
	// Unknown: the node has it now, and the evidence does not tell from where.
	Unknown Source = "unknown"
)

// Sources are all of them, in the order in which they are shown.
func Sources() []Source {
	return []Source{CacheHit, CacheMiss, FromUpstream, FromNode, Missing, Unknown}
}

// Report is what `testbed pull` tells.
type Report struct {
	Image  string `json:"image"`
	Digest string `json:"digest,omitempty"`
	Pulls  []Pull `json:"pulls"`
	Total  Total  `json:"total"`
	// Verdict is one sentence on who served the pulls, and what kept nodes from the cache; see Judge.
	Verdict string `json:"verdict,omitempty"`
	// Notes say what the evidence does not tell.
	Notes []string `json:"notes,omitempty"`
}

// Pull is one pull on one node.
type Pull struct {
	Node  string `json:"node"`
	Round int    `json:"round"`
	// Seconds is measured on the node.
	Seconds float64 `json:"seconds"`
	// Bytes is the size of all that the node had to get.
	Bytes int64 `json:"bytes"`
	// Mirrors are what the node's hosts.toml for the upstream names, in order: the caches. Without one the node asks the
	// upstream itself, and that is no fallback.
	Mirrors []string `json:"mirrors"`
	// Fallback: the node asked the upstream itself for something although it has a mirror.
	Fallback bool     `json:"fallback"`
	Objects  []Served `json:"objects"`
	// Error is why the pull failed, in the words of the container runtime; empty if it did not.
	Error string `json:"error,omitempty"`
}

// Served is one object of a pull and who served it.
type Served struct {
	Object
	By Source `json:"servedBy"`
	// CacheGets and NodeGets count the GET requests for it that the upstream saw of caches and of this node, whatever it
	// answered, UpstreamBytes what it sent for them.
	CacheGets     int   `json:"cacheGets"`
	NodeGets      int   `json:"nodeGets"`
	UpstreamBytes int64 `json:"upstreamBytes"`
	// Shared: several nodes that pulled at the same time needed it, and the log does not tell for which the cache fetched it.
	Shared bool `json:"shared,omitempty"`
}

// Total sums all pulls up.
type Total struct {
	Pulls     int `json:"pulls"`
	Failed    int `json:"failed"`
	Fallbacks int `json:"fallbacks"`
	// Seconds is the sum of all pulls, Slowest the longest of them.
	Seconds float64           `json:"seconds"`
	Slowest float64           `json:"slowestSeconds"`
	Bytes   int64             `json:"bytes"`
	Served  map[Source]Amount `json:"servedBy"`
	// Upstream is what the upstream saw of the image's repository, each request once.
	Upstream Traffic `json:"upstream"`
}

// Amount counts objects, and their bytes by the manifest.
type Amount struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// Traffic counts requests for manifests and blobs that the upstream saw of caches and nodes, and the bytes that it sent.
type Traffic struct {
	CacheGets  int   `json:"cacheGets"`
	CacheHeads int   `json:"cacheHeads"`
	NodeGets   int   `json:"nodeGets"`
	NodeHeads  int   `json:"nodeHeads"`
	Bytes      int64 `json:"bytes"`
}

// NewReport returns an empty report on the image.
func NewReport(image Image) *Report {
	report := &Report{Image: image.Reference, Digest: image.Digest(), Pulls: []Pull{}}
	report.Total.Served = map[Source]Amount{}
	if image.Problem != "" {
		report.Notes = append(report.Notes, "the upstream does not describe the image, so only what moved is listed, and the size of what a "+
			"cache had stored is not known: "+image.Problem)
	}
	return report
}

// Add adds what a batch has shown. Notes that are there already are not repeated.
func (r *Report) Add(findings Findings) {
	r.Pulls = append(r.Pulls, findings.Pulls...)
	for _, pull := range findings.Pulls {
		r.Total.add(pull)
	}
	r.Total.Upstream.add(findings.Upstream)
	for _, note := range findings.Notes {
		r.note(note)
	}
}

func (r *Report) note(note string) {
	for _, known := range r.Notes {
		if known == note {
			return
		}
	}
	r.Notes = append(r.Notes, note)
}

func (t *Total) add(pull Pull) {
	t.Pulls++
	if pull.Error != "" {
		t.Failed++
	}
	if pull.Fallback {
		t.Fallbacks++
	}
	t.Seconds += pull.Seconds
	t.Slowest = max(t.Slowest, pull.Seconds)
	t.Bytes += pull.Bytes
	for _, served := range pull.Objects {
		amount := t.Served[served.By]
		amount.Objects++
		amount.Bytes += served.Size
		t.Served[served.By] = amount
	}
}

func (t *Traffic) add(other Traffic) {
	t.CacheGets += other.CacheGets
	t.CacheHeads += other.CacheHeads
	t.NodeGets += other.NodeGets
	t.NodeHeads += other.NodeHeads
	t.Bytes += other.Bytes
}

// Err is nil if every pull succeeded; otherwise it names the nodes and what their container runtimes say.
func (r *Report) Err() error {
	var failed []string
	for _, pull := range r.Pulls {
		if pull.Error != "" {
			failed = append(failed, fmt.Sprintf("round %d on %s: %s", pull.Round, pull.Node, pull.Error))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d pulls of %s failed: %s", len(failed), len(r.Pulls), r.Image, strings.Join(failed, "; "))
}
