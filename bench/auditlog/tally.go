package auditlog

import (
	"net/http"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// reads are the verbs that change nothing.
var reads = []string{"get", "list", "watch"}

// Tally is what was asked of an API server.
type Tally struct {
	// Reads and Writes are numbers of requests.
	Reads, Writes int
	// Kinds counts requests as "verb resource", or "verb path" where there is no resource.
	Kinds map[string]int
	// Forbidden counts requests that RBAC refused, like Kinds.
	Forbidden map[string]int
}

// Count counts events.
func Count(events []auditv1.Event) Tally {
	t := Tally{Kinds: map[string]int{}, Forbidden: map[string]int{}}
	for _, event := range events {
		if slices.Contains(reads, event.Verb) {
			t.Reads++
		} else {
			t.Writes++
		}
		t.Kinds[kind(event)]++
		if event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden {
			t.Forbidden[kind(event)]++
		}
	}
	return t
}

// kind says what was done to what.
func kind(event auditv1.Event) string {
	ref := event.ObjectRef
	switch {
	case ref == nil:
		return event.Verb + " " + event.RequestURI
	case ref.Subresource != "":
		return event.Verb + " " + ref.Resource + "/" + ref.Subresource
	default:
		return event.Verb + " " + ref.Resource
	}
}

// ByNamespace returns the events that are about one of the namespaces, or about something cluster-wide of the same name, by
// that name, and all others.
func ByNamespace(events []auditv1.Event, is func(namespace string) bool) (by map[string][]auditv1.Event, others []auditv1.Event) {
	by = map[string][]auditv1.Event{}
	for _, event := range events {
		switch ref := event.ObjectRef; {
		case ref != nil && is(ref.Namespace):
			by[ref.Namespace] = append(by[ref.Namespace], event)
		case ref != nil && is(ref.Name):
			by[ref.Name] = append(by[ref.Name], event)
		default:
			others = append(others, event)
		}
	}
	return by, others
}

// Span is how long it took from the arrival of the first request to the last answer; 0 without events.
func Span(events []auditv1.Event) time.Duration {
	var first, last time.Time
	for _, event := range events {
		if at := event.RequestReceivedTimestamp.Time; first.IsZero() || at.Before(first) {
			first = at
		}
		if at := event.StageTimestamp.Time; at.After(last) {
			last = at
		}
	}
	return last.Sub(first)
}
