package trace

import (
	"fmt"
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
	GaveUp  Kind = "gave up" // a request of a node failed, and it tries the next host
)

// Event is the start or end of a pull, or one of its requests.
type Event struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// From is the client, or the node that pulls. To is the server.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// What is the method and the tag or digest of a request, or the image of a pull.
	What string `json:"what"`
	// Status and Bytes are those of the response. Seconds is the duration of the request or pull.
	Status  int     `json:"status,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Note is the reason of a failure.
	Note string `json:"note,omitempty"`
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
