package timeline

import (
	"k8s.io/apimachinery/pkg/watch"
)

// Named returns a match for all events of objects with the name.
func Named(name string) func(Event) bool {
	return func(e Event) bool { return e.Object.GetName() == name }
}

// Deleted returns a match for the events that say that the object with the name is gone.
func Deleted(name string) func(Event) bool {
	return func(e Event) bool { return e.Type == watch.Deleted && e.Object.GetName() == name }
}

// First returns the first event for which match is true; false when there is none.
func First(events []Event, match func(Event) bool) (Event, bool) {
	for _, e := range events {
		if match(e) {
			return e, true
		}
	}
	return Event{}, false
}

// Select returns the events for which match is true, in order.
func Select(events []Event, match func(Event) bool) []Event {
	var selected []Event
	for _, e := range events {
		if match(e) {
			selected = append(selected, e)
		}
	}
	return selected
}
