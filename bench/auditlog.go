package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// quiet is the time without a request after which AwaitQuiet treats an API server as idle.
	quiet        = time.Second
	quietTimeout = 30 * time.Second
)

// AuditLog reads each event of a growing audit log once. It is not safe for concurrent use.
type AuditLog struct {
	path   string
	offset int64
}

// Next returns the events since the previous call, in the order of the file. If the file does not
// exist, there are no events yet: the API server creates the file with the first event.
func (l *AuditLog) Next() ([]auditv1.Event, error) {
	data, err := l.rest()
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1] // the last line may be incomplete
	l.offset += int64(len(whole))
	var events []auditv1.Event
	for line := range bytes.Lines(whole) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading an event of the audit log %s: %w", l.path, err)
		}
		events = append(events, event)
	}
	return events, nil
}

func (l *AuditLog) rest() (data []byte, err error) {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.ReadAll(io.NewSectionReader(file, l.offset, math.MaxInt64-l.offset))
}

// AwaitQuiet waits, at most 30 seconds, until one second passes without a new event.
func (l *AuditLog) AwaitQuiet(ctx context.Context) error {
	size := int64(-1)
	err := wait.PollUntilContextTimeout(ctx, quiet, quietTimeout, true, func(context.Context) (bool, error) {
		before := size
		info, err := os.Stat(l.path)
		switch {
		case err == nil:
			size = info.Size()
		case errors.Is(err, fs.ErrNotExist):
			size = 0
		default:
			return false, err
		}
		return before == size, nil
	})
	if err != nil {
		return fmt.Errorf("no %s without a request in %s within %s: %w", quiet, l.path, quietTimeout, err)
	}
	return nil
}

// IsRead reports whether the verb only reads: get, list or watch.
func IsRead(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// Tally counts the requests to an API server.
type Tally struct {
	Reads, Writes int
	// Kinds counts requests by "verb resource", or "verb path" for a request without a resource.
	Kinds map[string]int
	// Forbidden counts the requests that RBAC rejected, with the same keys as Kinds.
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
	if event.ObjectRef == nil {
		return event.Verb + " " + event.RequestURI
	}
	return event.Verb + " " + path.Join(event.ObjectRef.Resource, event.ObjectRef.Subresource)
}

// ByNamespace groups events by namespace. An event about a cluster-scoped object counts for the
// namespace with the object's name. Events for namespaces that the given function rejects are
// returned separately.
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

// Span returns the time from the first request to the last response, or 0 without events.
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
