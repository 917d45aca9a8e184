package trace

import (
	"slices"
	"time"
)

// Order sorts events by time although logs arrive with different delays, by holding them for Delay.
// It is not safe for concurrent use.
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
