package trace

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
)

// Kind is the kind of an event.
type Kind string

// The kinds.
const (
	Began   Kind = "began"   // a node began to pull
	Pulled  Kind = "pulled"  // a pull succeeded
	Failed  Kind = "failed"  // a pull failed
	Request Kind = "request" // a request was answered
	GaveUp  Kind = "gave up" // a request of a node failed, and the node tries the next host
)

// Event is the start or end of a pull, or a request of a pull.
type Event struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	From string    `json:"from"`         // the client, or the node that pulls
	To   string    `json:"to,omitempty"` // the server
	What string    `json:"what"`         // the method and the tag or digest of a request, or the image of a pull
	// Status and Bytes are those of the response. Seconds is the duration of the request or pull.
	Status  int     `json:"status,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Note    string  `json:"note,omitempty"` // the reason of a failure
}

// String returns the event as one line of text.
func (e Event) String() string {
	line := fmt.Sprintf("%s  %-8s ", e.Time.UTC().Format("15:04:05.000"), e.From)
	switch e.Kind {
	case Began:
		return line + "begins to pull " + e.What
	case Pulled:
		return line + fmt.Sprintf("has %s, after %.2fs", e.What, e.Seconds)
	case Failed:
		return line + fmt.Sprintf("failed to pull %s after %.2fs: %s", e.What, e.Seconds, e.Note)
	case GaveUp:
		return line + fmt.Sprintf("-> %-16s %s: %s; asks the next host", e.To, e.What, e.Note)
	default:
		line += fmt.Sprintf("-> %-16s %s: %d, %s, %.3fs", e.To, e.What, e.Status, units.BytesSize(float64(e.Bytes)), e.Seconds)
		if e.Note != "" {
			line += ", " + e.Note
		}
		return line
	}
}

// Order sorts events by time, although they arrive from the logs with different delays. Order keeps
// each event until the event is Delay old.
type Order struct {
	Delay time.Duration
	held  []Event
}

// Add adds an event.
func (o *Order) Add(event Event) {
	i := len(o.held)
	for i > 0 && o.held[i-1].Time.After(event.Time) {
		i--
	}
	o.held = slices.Insert(o.held, i, event)
}

// Due removes and returns the events that are at least Delay old.
func (o *Order) Due(now time.Time) []Event {
	n := slices.IndexFunc(o.held, func(e Event) bool { return now.Sub(e.Time) < o.Delay })
	if n < 0 {
		return o.All()
	}
	due := slices.Clone(o.held[:n])
	o.held = slices.Delete(o.held, 0, n)
	return due
}

// All removes and returns all events.
func (o *Order) All() []Event {
	all := o.held
	o.held = nil
	return all
}

// Summary counts the requests of a trace.
type Summary struct {
	Edges  []Edge `json:"edges"`
	Pulls  int    `json:"pulls"` // the number of ended pulls, including Failed
	Failed int    `json:"failed"`
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
