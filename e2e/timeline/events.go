package timeline

import (
	"k8s.io/apimachinery/pkg/watch"
)

// Named matches the events of objects with the name.
func Named(name string) func(Event) bool {
	return func(e Event) bool { return e.Object.GetName() == name }
}

// Deleted matches the deletion of an object with the name.
func Deleted(name string) func(Event) bool {
	return func(e Event) bool { return e.Type == watch.Deleted && e.Object.GetName() == name }
}

// First returns the first event that matches, and false if none does.
func First(events []Event, match func(Event) bool) (Event, bool) {
	for _, e := range events {
		if match(e) {
			return e, true
		}
	}
	return Event{}, false
}

// Select returns the events that match, in order.
func Select(events []Event, match func(Event) bool) []Event {
	var selected []Event
	for _, e := range events {
		if match(e) {
			selected = append(selected, e)
		}
	}
	return selected
}
