package trace

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const image = "alpha.upstream.test/shop/web:v1"

func reader(t *testing.T) *Reader {
	t.Helper()
	parsed, err := ParseImage(image)
	if err != nil {
		t.Fatal(err)
	}
	return &Reader{
		Image: parsed,
		Cache: func(host string) string { return map[string]string{"10.96.0.7": "cache alpha"}[host] },
		Asker: func(address string) string {
			return map[string]string{"10.244.1.1:7210": "worker", "172.18.0.3:1": "worker"}[address]
		},
	}
}

// entry is a line of a log and its source.
type entry struct{ source, text string }

// logged returns lines from the logs of a real testbed. The image and the hosts were renamed.
func logged(t *testing.T) []entry {
	t.Helper()
	content, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []entry
	for line := range strings.Lines(string(content)) {
		source, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, entry{source, text})
	}
	return all
}

func read(t *testing.T, r *Reader) []Event {
	t.Helper()
	var events []Event
	for _, line := range logged(t) {
		var event Event
		var ok bool
		switch line.source {
		case "upstream":
			event, ok = r.AccessLog("alpha.upstream.test", line.text)
		case "cache":
			event, ok = r.CacheLog("cache alpha", line.text)
		default:
			events = append(events, r.Containerd(line.source, line.text)...)
		}
		if ok {
			events = append(events, event)
		}
	}
	return events
}

func TestEvents(t *testing.T) {
	r := reader(t)
	events := read(t, r)
	var out bytes.Buffer
	for _, event := range events {
		fmt.Fprintln(&out, event)
	}
	if err := Sum(events).Write(&out); err != nil {
		t.Error(err)
	}
	golden.Compare(t, "events.txt", out.String())
	if left := r.RunningPulls(); len(left) > 0 {
		t.Errorf("running: %v", left)
	}
}
