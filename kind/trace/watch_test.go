package trace

import (
	"strings"
	"testing"
	"time"
)

// TestTraceWatch: a trace ends when nothing is under way, and not by waiting for ever for an end
// that nobody logs.
func TestTraceWatch(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := []Event{{Time: start, From: "worker", What: "alpha.upstream.test/shop/web:v1"}}
	watch := traceWatch{heard: start}
	for _, step := range []struct {
		after    time.Duration
		events   int
		underWay []Event
		over     bool
		said     string
	}{
		{time.Second, 1, open, false, ""},
		{time.Minute, 0, open, false, ""},
		{2 * time.Minute, 0, nil, false, ""},
		{2*time.Minute + traceDelay, 0, open, false, ""}, // another one began before the trace was over
		{2*time.Minute + 3*traceDelay, 0, nil, false, ""},
		{2*time.Minute + 5*traceDelay, 0, nil, false, ""},
		{2*time.Minute + 6*traceDelay, 0, nil, true, ""},
		{5 * time.Minute, 3, open, false, ""},
		{11*time.Minute - time.Second, 0, open, false, ""},
		{11 * time.Minute, 0, open, true, "nothing was heard for 6m0s of what by the logs has not ended (pulls: 1; the first of " +
			"alpha.upstream.test/shop/web:v1 on worker, begun at 03:04:05)"},
	} {
		over, err := watch.over(start.Add(step.after), step.events, step.underWay)
		if over != step.over || (err == nil) != (step.said == "") || err != nil && !strings.Contains(err.Error(), step.said) {
			t.Errorf("after %s: over %t, error %v; want %t, %q", step.after, over, err, step.over, step.said)
		}
	}
}
