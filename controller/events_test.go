package controller

import (
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
)

// recordEvents returns the Events that the actuator records from now on.
func (l *landscape) recordEvents() <-chan string {
	recorder := events.NewFakeRecorder(100)
	l.actuator.events = recorder
	return recorder.Events
}

// assertEvents compares the beginnings of the Events so far.
func assertEvents(t *testing.T, told <-chan string, want ...string) {
	t.Helper()
	for _, beginning := range want {
		select {
		case event := <-told:
			if !strings.HasPrefix(event, beginning) {
				t.Errorf("the event is %q, want %q", event, beginning)
			}
		default:
			t.Errorf("there is no event %q", beginning)
		}
	}
	if len(told) > 0 {
		t.Errorf("another event is %q", <-told)
	}
}

// TestDocumentedEvents: the documentation contains the reason of every Event.
func TestDocumentedEvents(t *testing.T) {
	page, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"AllNodesCleaned", "NodesSkipped", "VolumeGrowing", "VolumeNotGrown", "VolumeReplaced"} {
		if !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("docs/observability.md does not name %s", reason)
		}
	}
}
