package bench

import (
	"os"
	"path/filepath"
	"reflect"
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

func TestAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	reader := &AuditLog{path: path}
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
		if step.add != "" {
			appendTo(t, path, step.add)
		}
		events, err := reader.Next()
		if err != nil || len(events) != step.want {
			t.Fatalf("%d events, error %v; want %d", len(events), err, step.want)
		}
	}
	appendTo(t, path, "no JSON\n")
	if _, err := reader.Next(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want it to name the file", err)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	appendTo(t, path, lines)
	events, err := (&AuditLog{path: path}).Next()
	if err != nil {
		t.Fatal(err)
	}
	got := Count(events)
	want := Tally{
		Reads: 3, Writes: 2,
		Kinds:     map[string]int{"get secrets": 1, "get clusters": 1, "patch extensions/status": 1, "update leases": 1, "get /apis": 1},
		Forbidden: map[string]int{"get clusters": 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("counted %+v\nwant %+v", got, want)
	}
	by, others := ByNamespace(events, func(name string) bool { return strings.HasPrefix(name, "shoot--") })
	if len(by) != 2 || len(by["shoot--a"]) != 2 || len(by["shoot--b"]) != 1 || len(others) != 2 {
		t.Errorf("%d of shoot a, %d of shoot b, %d others", len(by["shoot--a"]), len(by["shoot--b"]), len(others))
	}
	if span := Span(by["shoot--a"]); span != 150*time.Millisecond {
		t.Errorf("shoot a took %s", span)
	}
	if span := Span(nil); span != 0 {
		t.Errorf("nothing took %s", span)
	}
}
