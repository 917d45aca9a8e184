package trace

import (
	"fmt"
	"time"

	"github.com/docker/go-units"
)

// Kind says what an event is.
type Kind string

// The kinds.
const (
	Began   Kind = "began"   // a node began to pull
	Pulled  Kind = "pulled"  // a node has the image
	Failed  Kind = "failed"  // a pull failed
	Request Kind = "request" // somebody answered a request
	GaveUp  Kind = "gave up" // a node got nothing from a host and asks the next one
)

// Event is something that happened during a pull.
type Event struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// From is who asks, or pulls; To is who was asked.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// What is the request: method, and tag or digest; or the image of a pull.
	What string `json:"what"`
	// Status, Bytes and Seconds are of the answer.
	Status  int     `json:"status,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Note is why something went wrong.
	Note string `json:"note,omitempty"`
}

// String is a line for people.
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
