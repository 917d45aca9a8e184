package trace

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRunningPulls checks that each pull ends once, regardless of other pulls on the node.
func TestRunningPulls(t *testing.T) {
	const begins, returns = `msg="PullImage \"` + image + `\""`, `msg="PullImage \"` + image + `\" returns image reference"`
	const other = `msg="PullImage \"alpha.upstream.test/shop/web:v2\""`
	r := reader(t)
	for second, step := range []struct {
		node, text string
		left       int
		want       string // the end of the last event's text
	}{
		{"worker", begins, 1, "begins to pull " + image},
		{"worker", begins, 2, "begins to pull " + image},
		{"worker", other, 3, "begins to pull alpha.upstream.test/shop/web:v2"},
		{"worker2", begins, 4, "begins to pull " + image},
		{"worker", returns, 3, "has " + image + ", after 4.00s"},
		{"worker", returns, 2, "has " + image + ", after 4.00s"},
		{"worker", returns, 2, "has " + image + ", after 0.00s"},
		{"worker", `msg="starting containerd"`, 1, "failed to pull alpha.upstream.test/shop/web:v2 after 5.00s: containerd restarted"},
		{"worker", `msg="starting containerd"`, 1, ""},
		{"worker2", `msg="PullImage \"` + image + `\" failed" error="rpc: \"x\": EOF"`, 0, "failed to pull " + image + " after 6.00s: EOF"},
	} {
		got := ""
		for _, event := range r.Containerd(step.node, fmt.Sprintf(`time="2026-11-22T00:03:%02dZ" level=info `, second)+step.text) {
			got += event.String()
		}
		if !strings.HasSuffix(got, step.want) || (got == "") != (step.want == "") || len(r.RunningPulls()) != step.left {
			t.Errorf("%d, %s: got %q, want %q; running: %v, want %d", second, step.text, got, step.want, r.RunningPulls(), step.left)
		}
	}
}

// TestOtherUpstream checks that the same repository of another upstream is not traced.
func TestOtherUpstream(t *testing.T) {
	if event, ok := reader(t).AccessLog("beta.upstream.test", logged(t)[5].text); ok {
		t.Errorf("event %v", event)
	}
}

func TestParseImage(t *testing.T) {
	if _, err := ParseImage("alpha.upstream.test/Shop"); err == nil {
		t.Error("an image with capitals was accepted")
	}
}

func TestOrder(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	order := Order{Delay: time.Second}
	for _, after := range []int{3, 1, 2, 1} {
		order.Add(Event{Time: start.Add(time.Duration(after) * time.Second), What: fmt.Sprint(after, len(order.held))})
	}
	names := func(events []Event) string {
		var all []string
		for _, event := range events {
			all = append(all, event.What)
		}
		return strings.Join(all, ", ")
	}
	if got := names(order.Due(start.Add(2 * time.Second))); got != "1 1, 1 3" {
		t.Errorf("due: %s", got)
	}
	if got := names(order.Due(start.Add(2 * time.Second))); got != "" {
		t.Errorf("due again: %s", got)
	}
	if got := names(order.All()); got != "2 2, 3 0" {
		t.Errorf("the rest: %s", got)
	}
}
