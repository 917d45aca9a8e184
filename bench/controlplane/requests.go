package controlplane

import (
	"net/http"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// IsRead reports whether a verb changes nothing.
func IsRead(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// Tally counts the requests to an API server.
type Tally struct {
	Reads, Writes int
	// Kinds counts requests by "verb resource", or "verb path" for a request without a resource.
	Kinds map[string]int
	// Forbidden counts the requests that RBAC rejected, with the keys of Kinds.
	Forbidden map[string]int
}

// Count returns the Tally of the events.
func Count(events []auditv1.Event) Tally {
	t := Tally{Kinds: map[string]int{}, Forbidden: map[string]int{}}
	for _, event := range events {
		if IsRead(event.Verb) {
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

// ByNamespace splits events by the namespace of their object. A cluster-scoped object counts for
// the namespace of the same name. Events about no matching namespace are in others.
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

// Span is the time from the first request to the last response; 0 without events.
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
