package trace

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/docker/go-units"
)

// Summary counts the requests of a trace.
type Summary struct {
	Edges []Edge `json:"edges"`
	// Pulls is the number of ended pulls, including Failed.
	Pulls  int `json:"pulls"`
	Failed int `json:"failed"`
}

// Edge counts the requests of one client to one server.
type Edge struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	Requests int     `json:"requests"`
	Errors   int     `json:"errors"`
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"`
}

// Sum returns the summary of events. Edges are sorted by From and To.
func Sum(events []Event) Summary {
	summary := Summary{Edges: []Edge{}}
	edges := map[string]*Edge{}
	for _, e := range events {
		switch e.Kind {
		case Pulled:
			summary.Pulls++
			continue
		case Failed:
			summary.Pulls++
			summary.Failed++
			continue
		case Began:
			continue
		}
		key := e.From + "\n" + e.To
		if edges[key] == nil {
			edges[key] = &Edge{From: e.From, To: e.To}
		}
		edge := edges[key]
		edge.Requests++
		edge.Bytes += e.Bytes
		edge.Seconds += e.Seconds
		if e.Kind == GaveUp || e.Status >= 400 {
			edge.Errors++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(edges)) {
		summary.Edges = append(summary.Edges, *edges[key])
	}
	return summary
}

// Write prints the summary as text.
func (s Summary) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "pulls: %d, failed: %d\n", s.Pulls, s.Failed)
	for _, e := range s.Edges {
		size := units.BytesSize(float64(e.Bytes))
		fmt.Fprintf(table, "  %s -> %s\t%d requests\t%d errors\t%s\t%.2fs\n", e.From, e.To, e.Requests, e.Errors, size, e.Seconds)
	}
	return table.Flush()
}
