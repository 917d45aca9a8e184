package trace

import (
	"slices"
	"time"
)

// Order hands events on in the order of time, although logs arrive with different delays: an event is held back for a while.
// It is not safe for concurrent use.
type Order struct {
	// Delay is how long an event is held back.
	Delay time.Duration
	held  []Event
}

// Add takes an event.
func (o *Order) Add(event Event) {
	i := len(o.held)
	for i > 0 && o.held[i-1].Time.After(event.Time) {
		i--
	}
	o.held = slices.Insert(o.held, i, event)
}

// Due takes out what has been held back for long enough.
func (o *Order) Due(now time.Time) []Event {
	n := 0
	for n < len(o.held) && now.Sub(o.held[n].Time) >= o.Delay {
		n++
	}
	due := slices.Clone(o.held[:n])
	o.held = slices.Delete(o.held, 0, n)
	return due
}

// All takes out the rest.
func (o *Order) All() []Event {
	all := o.held
	o.held = nil
	return all
}
