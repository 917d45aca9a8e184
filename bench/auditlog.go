package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// quiet is the time without a request after which Drain treats an API server as idle.
	quiet        = time.Second
	quietTimeout = 30 * time.Second
)

// auditPolicy records the requests of a user: one event at each response, and for a watch one at
// its start and one at its end. Requests for Leases are omitted, because they never stop, and their
// number does not depend on the number of shoots.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: Metadata
  users: [%q]
- level: None
`

// AuditLog reads each event of a growing audit log once. It is not safe for concurrent use.
type AuditLog struct {
	file *os.File
	rest []byte // an incomplete last line
}

// Next returns the events since the previous call, in the order of the file.
func (l *AuditLog) Next() ([]auditv1.Event, error) {
	added, err := io.ReadAll(l.file)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	data := append(l.rest, added...)
	end := bytes.LastIndexByte(data, '\n') + 1
	l.rest = data[end:]
	var events []auditv1.Event
	for line := range bytes.Lines(data[:end]) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("decode an event of the audit log %s: %w", l.file.Name(), err)
		}
		events = append(events, event)
	}
	return events, nil
}

// Drain discards events until one second passes without one, for at most 30 seconds.
func (l *AuditLog) Drain(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, quiet, quietTimeout, false, func(context.Context) (bool, error) {
		events, err := l.Next()
		return len(events) == 0, err
	})
	if err != nil {
		return fmt.Errorf("no %s without a request in %s within %s: %w", quiet, l.file.Name(), quietTimeout, err)
	}
	return nil
}

// Requests counts requests by "verb resource", or "verb path" for a request without a resource.
type Requests map[string]int

// Count counts all requests in the events, and those that were answered with 403.
func Count(events []auditv1.Event) (all, forbidden Requests) {
	all, forbidden = Requests{}, Requests{}
	for _, event := range events {
		kind := event.Verb + " " + event.RequestURI
		if ref := event.ObjectRef; ref != nil {
			kind = event.Verb + " " + path.Join(ref.Resource, ref.Subresource)
		}
		all[kind]++
		if event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden {
			forbidden[kind]++
		}
	}
	return all, forbidden
}

// Span returns the time from the first request to the last response, or 0 without events.
func Span(events []auditv1.Event) time.Duration {
	var first, last time.Time
	for i, event := range events {
		if at := event.RequestReceivedTimestamp.Time; i == 0 || at.Before(first) {
			first = at
		}
		if at := event.StageTimestamp.Time; at.After(last) {
			last = at
		}
	}
	return last.Sub(first)
}
