package bench

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lines are from an audit log of kube-apiserver v1.36, without the fields that the package ignores.
const lines = `{"kind":"Event","verb":"get","requestURI":"/api/v1/namespaces/shoot--a/secrets/gardener","objectRef":{"resource":"secrets","namespace":"shoot--a","name":"gardener"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.100000Z","stageTimestamp":"2026-01-01T00:00:00.105000Z"}
{"kind":"Event","verb":"get","requestURI":"/apis/x/clusters/shoot--b","objectRef":{"resource":"clusters","name":"shoot--b"},"responseStatus":{"code":403},"requestReceivedTimestamp":"2026-01-01T00:00:00.300000Z","stageTimestamp":"2026-01-01T00:00:00.400000Z"}
{"kind":"Event","verb":"patch","requestURI":"/x","objectRef":{"resource":"extensions","subresource":"status","namespace":"shoot--a","name":"x"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:00.050000Z","stageTimestamp":"2026-01-01T00:00:00.200000Z"}
{"kind":"Event","verb":"update","requestURI":"/l","objectRef":{"resource":"leases","namespace":"garden","name":"x"},"requestReceivedTimestamp":"2026-01-01T00:00:00.050000Z","stageTimestamp":"2026-01-01T00:00:00.200000Z"}
{"kind":"Event","verb":"get","requestURI":"/apis","requestReceivedTimestamp":"2026-01-01T00:00:00.050000Z","stageTimestamp":"2026-01-01T00:00:00.200000Z"}
`

// newAuditLog returns an AuditLog that reads a new file, and a function that appends to it.
func newAuditLog(t *testing.T) (*AuditLog, func(text string)) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := os.OpenFile(file.Name(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(file.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return &AuditLog{file: file}, func(text string) {
		if _, err := server.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAuditLog(t *testing.T) {
	log, add := newAuditLog(t)
	for _, step := range []struct {
		add  string
		want int
	}{
		{"", 0},
		{lines, 5},
		{"", 0},
		{lines[:50], 0}, // half a line
		{lines[50:], 5},
	} {
		add(step.add)
		events, err := log.Next()
		if err != nil || len(events) != step.want {
			t.Fatalf("%d events, error %v; want %d", len(events), err, step.want)
		}
	}
	add("no JSON\n")
	if _, err := log.Next(); err == nil || !strings.Contains(err.Error(), log.file.Name()) {
		t.Errorf("error %v, want it to name the file", err)
	}
}

// TestDrain: earlier events are discarded, and later ones are not.
func TestDrain(t *testing.T) {
	log, add := newAuditLog(t)
	add(lines)
	if err := log.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if events, err := log.Next(); err != nil || len(events) != 0 {
		t.Errorf("%d earlier events, error %v", len(events), err)
	}
	add(lines)
	if events, err := log.Next(); err != nil || len(events) != 5 {
		t.Errorf("%d later events, error %v", len(events), err)
	}
}

func TestCount(t *testing.T) {
	log, add := newAuditLog(t)
	add(lines)
	events, err := log.Next()
	if err != nil {
		t.Fatal(err)
	}
	all, forbidden := Count(events)
	want := Requests{"get secrets": 1, "get clusters": 1, "patch extensions/status": 1, "update leases": 1, "get /apis": 1}
	if !maps.Equal(all, want) || !maps.Equal(forbidden, Requests{"get clusters": 1}) {
		t.Errorf("counted %v, forbidden %v", all, forbidden)
	}
	if span := Span(events); span != 350*time.Millisecond {
		t.Errorf("all took %s", span)
	}
	if span := Span(nil); span != 0 {
		t.Errorf("nothing took %s", span)
	}
}
