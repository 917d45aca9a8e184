package trace

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/logs"
)

// cacheRun returns the log of one run of a cache. The log ends after one request.
func cacheRun(run int) logs.Stream {
	return saying("registry-alpha-0", fmt.Sprintf(`msg="response completed" http.request.uri="/v2/shop/web/manifests/run%d" `+
		`http.request.method=GET http.request.remoteaddr="172.18.0.3:4711" http.response.status=200`, run))
}

// journalOf returns the log of a node that gives up a request to the cache of this run.
func journalOf(run int) logs.Stream {
	url := fmt.Sprintf("http://10.96.0.%d:5000/v2/shop/web/manifests/run%d", run, run)
	return saying("worker", fmt.Sprintf(`msg="trying next host" method=HEAD error="x" url=%q`, url))
}

// saying returns a stream with one line that is logged now.
func saying(name, text string) logs.Stream { return said(name, text, 0) }

// said returns a stream with one line of this age.
func said(name, text string, age time.Duration) logs.Stream {
	return logs.Stream{Name: name, Parse: logs.Container, Open: func(_ context.Context, _ logs.Window, out io.Writer) error {
		now := time.Now().UTC().Add(-age).Format(time.RFC3339Nano)
		_, err := fmt.Fprintf(out, "%s time=%q level=info %s\n", now, now, text)
		return err
	}}
}

// TestWaiter checks that a trace ends when no pull is running, or no event came for silenceTimeout.
func TestWaiter(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := []Event{{Time: start, From: "worker", What: "alpha.upstream.test/shop/web:v1"}}
	watch := waiter{lastEvent: start}
	for _, step := range []struct {
		after   time.Duration
		events  int
		running []Event
		over    bool
		said    string
	}{
		{time.Second, 1, open, false, ""},
		{time.Minute, 0, open, false, ""},
		{2 * time.Minute, 0, nil, false, ""},
		{2*time.Minute + orderDelay, 0, open, false, ""}, // another pull began before the trace ended
		{2*time.Minute + 3*orderDelay, 0, nil, false, ""},
		{2*time.Minute + 5*orderDelay, 0, nil, false, ""},
		{2*time.Minute + 6*orderDelay, 0, nil, true, ""},
		{5 * time.Minute, 3, open, false, ""},
		{11*time.Minute - time.Second, 0, open, false, ""},
		{11 * time.Minute, 0, open, true, "no event for 6m0s of 1 pulls whose end is not in the logs, the first of " +
			"alpha.upstream.test/shop/web:v1 on worker since 03:04:05"},
	} {
		over, err := watch.over(start.Add(step.after), step.events, step.running)
		if over != step.over || (err == nil) != (step.said == "") || err != nil && !strings.Contains(err.Error(), step.said) {
			t.Errorf("after %s: over %t, error %v; want %t, %q", step.after, over, err, step.over, step.said)
		}
	}
}
