package pull

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/docker/go-units"
)

// shortDigest is the number of a digest's hex digits that are printed.
const shortDigest = 12

// Write prints the report as text: each pull and its objects, the requests to the upstream, notes,
// and the verdict.
func (r *Report) Write(w io.Writer) error {
	// tabwriter aligns columns only up to a line without tabs, so each pull has its own widths.
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.TrimSpace(r.Image+"  "+r.Digest))
	for _, pull := range r.Pulls {
		pull.write(table)
	}
	u := r.Total.Upstream
	fmt.Fprintf(table, "upstream: %s and %s by caches, %s and %s by nodes, %s sent\n", count(u.CacheGets, "GET"), count(u.CacheHeads, "HEAD"),
		count(u.NodeGets, "GET"), count(u.NodeHeads, "HEAD"), size(u.Bytes))
	for _, note := range r.Notes {
		fmt.Fprintf(table, "note: %s\n", note)
	}
	if r.Verdict != "" {
		fmt.Fprintf(table, "verdict: %s\n", r.Verdict)
	}
	return table.Flush()
}

func (p Pull) write(w io.Writer) {
	mark := "✓"
	if p.Error != "" {
		mark = "✗"
	}
	fmt.Fprintf(w, "%s %s: %.2fs, %s, %s\n", mark, p.Node, p.Seconds, size(p.Bytes), p.route())
	for _, served := range p.Objects {
		fmt.Fprintf(w, "    %s\t%s\t%s\t%s\t%s\n", served.Part, short(served.Digest), size(served.Size), served.By, served.asked())
	}
	if p.Error != "" {
		fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(p.Error, "\n", "\n    "))
	}
}

func (p Pull) route() string {
	switch {
	case len(p.Mirrors) == 0:
		return "no mirror for this upstream on the node"
	case p.Fallback:
		return "fallback to the upstream"
	default:
		return "no fallback"
	}
}

func (s Served) asked() string {
	var parts []string
	if s.CacheGets > 0 {
		parts = append(parts, fmt.Sprintf("%s by cache", count(s.CacheGets, "GET")))
	}
	if s.NodeGets > 0 {
		parts = append(parts, fmt.Sprintf("%s by node", count(s.NodeGets, "GET")))
	}
	if len(parts) == 0 {
		return count(0, "GET")
	}
	return strings.Join(parts, ", ") + ", " + size(s.UpstreamBytes)
}

func size(bytes int64) string { return units.BytesSize(float64(bytes)) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func short(digest string) string {
	algorithm, hex, found := strings.Cut(digest, ":")
	if !found || len(hex) <= shortDigest {
		return digest
	}
	return algorithm + ":" + hex[:shortDigest]
}
