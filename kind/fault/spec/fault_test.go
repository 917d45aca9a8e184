package spec

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func must(t *testing.T, target, kind string, given map[string][]string) Fault {
	t.Helper()
	f, err := New(target, kind, given)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTimes(t *testing.T) {
	forever := must(t, "upstream/a", "hang", nil).Begin("f1", noon)
	if forever.Ended(noon.Add(1000*time.Hour)) || !forever.Ends.IsZero() {
		t.Error("a fault without --for has an end")
	}
	short := must(t, "upstream/a", "hang", map[string][]string{"for": {"30s"}}).Begin("f2", noon)
	if short.Ended(noon.Add(29*time.Second)) || !short.Ended(noon.Add(30*time.Second)) {
		t.Errorf("a fault of 30s at %s ends at %s", noon, short.Ends)
	}
	if left := Active([]Fault{forever, short}, noon.Add(time.Minute)); len(left) != 1 || left[0].ID != "f1" {
		t.Errorf("active after a minute: %v", left)
	}
}

func TestNextID(t *testing.T) {
	for want, ids := range map[string][]string{"f1": nil, "f3": {"f2"}, "f11": {"f2", "f10", "other"}} {
		var all []Fault
		for _, id := range ids {
			all = append(all, Fault{ID: id})
		}
		if got := NextID(all); got != want {
			t.Errorf("ID after %v: %s, want %s", ids, got, want)
		}
	}
}

func TestStored(t *testing.T) {
	all := []Fault{
		must(t, "upstream/a", "status", map[string][]string{"status": {"429"}, "header": {"A=b"}, "for": {"90s"}}).Begin("f1", noon),
		must(t, "upstream/b", "truncate", map[string][]string{"after": {"0"}}).Begin("f2", noon),
		must(t, "cache/c", "stop", nil).Begin("f3", noon),
		must(t, "node/d", "loss", nil).Begin("f4", noon),
	}
	content, err := Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(content)
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%s is read as %+v, %v", content, got, err)
	}
	for name, content := range map[string]string{
		"no JSON": "x", "no list": "{}", "unknown role": `[{"target":"pod/x","kind":"hang"}]`, "unknown kind": `[{"target":"node/x","kind":"hang"}]`,
		"no profile": `[{"target":"upstream/x","kind":"profile"}]`,
	} {
		if got, err := Decode([]byte(content)); err == nil {
			t.Errorf("%s is read as %v", name, got)
		}
	}
	if content, err := Encode(nil); err != nil || string(content) != "[]" {
		t.Errorf("no faults are encoded as %s, %v", content, err)
	}
}

func TestChoose(t *testing.T) {
	names := []string{"alpha.upstream.test", "docker.io", "docker.elastic.co", "alpha"}
	for name, want := range map[string]string{
		"alpha.upstream.test": "alpha.upstream.test", "docker.io": "docker.io",
		"alpha": "alpha", // a full name that is also a short name
	} {
		if got, err := (Target{Upstream, name}).Choose(names, ShortHost); err != nil || got.Name != want {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	if got, err := (Target{Upstream, "alpha"}).Choose(names[:3], ShortHost); err != nil || got.Name != "alpha.upstream.test" {
		t.Errorf("a short name is %s, %v", got, err)
	}
	var usageError *UsageError
	for _, name := range []string{"delta", "docker"} { // the second is ambiguous
		_, err := Target{Upstream, name}.Choose(names[:3], ShortHost)
		want := "target upstream/" + name + " not found, use one of upstream/alpha.upstream.test, upstream/docker.io, upstream/docker.elastic.co"
		if !errors.As(err, &usageError) || err.Error() != want {
			t.Errorf("error %v", err)
		}
	}
	if _, err := (Target{Cache, "alpha"}).Choose(nil, ShortHost); !errors.As(err, &usageError) || !strings.Contains(err.Error(), "has no cache") {
		t.Errorf("error %v", err)
	}
}

func TestSame(t *testing.T) {
	f := must(t, "cache/a", "stop", nil).Begin("f1", noon)
	if later := f.Begin("f1", noon.Add(time.Second)); f.Same(later) || !f.Same(f) || f.Same(f.Begin("f2", noon)) {
		t.Error("Same must compare ID and start")
	}
}

// TestTable checks that each fault has exactly one way to begin and end, that its options exist,
// and that it can be created and described.
func TestTable(t *testing.T) {
	known := map[string]bool{}
	for _, option := range Options() {
		known[option.Name] = true
	}
	values := given{"status": {"500"}, "rate": {"1"}, "accept": {sum}, "name": {"quay"}}
	for _, d := range table {
		ways := 0
		for _, way := range []bool{d.on != "", d.method != "", d.oneShot} {
			if way {
				ways++
			}
		}
		if ways != 1 || d.argument != "" && d.method == "" {
			t.Errorf("%s of %s: %d ways to begin", d.kind, d.role, ways)
		}
		for _, name := range d.options() {
			if !known[name] {
				t.Errorf("%s of %s has the unknown option --%s", d.kind, d.role, name)
			}
		}
		needed := given{}
		if d.needs != "" {
			needed[d.needs] = values[d.needs]
		}
		f, err := New(string(d.role)+"/x", string(d.kind), needed)
		if err != nil || f.OneShot() != d.oneShot || f.Effect() == "" || strings.ContainsAny(f.Effect(), "{}") {
			t.Errorf("%s of %s: %+v %q, %v", d.kind, d.role, f, f.Effect(), err)
		}
	}
	if got := Catalog(); strings.Count(got, "\n") != len(table) || !strings.Contains(got, "upstream/…  status            answers --status to requests\n") {
		t.Errorf("catalog:\n%s", got)
	}
}

func TestSelect(t *testing.T) {
	active := []Fault{{ID: "f1"}, {ID: "f2"}, {ID: "f3"}}
	for _, tc := range []struct {
		name   string
		active []Fault
		ids    []string
		want   []string
		err    string
	}{
		{"all", active, nil, []string{"f1", "f2", "f3"}, ""},
		{"some", active, []string{"f3", "f1"}, []string{"f1", "f3"}, ""},
		{"unknown", active, []string{"f1", "f9"}, nil, "fault f9 is not active, use one of f1, f2, f3"},
		{"no active faults", nil, []string{"f1"}, nil, "fault f1 is not active: there are no active faults"},
		{"all of none", nil, nil, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			chosen, err := Select(tc.active, tc.ids)
			var got []string
			for _, f := range chosen {
				got = append(got, f.ID)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("chosen %v, want %v", got, tc.want)
			}
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	var text strings.Builder
	if err := Write(&text, nil); err != nil || text.String() != "no active faults\n" {
		t.Errorf("none: %q, %v", text.String(), err)
	}
	text.Reset()
	first := must(t, "upstream/alpha", "status", map[string][]string{"status": {"429"}}).Begin("f1", noon)
	second := must(t, "cache/beta", "stop", map[string][]string{"for": {"30s"}}).Begin("f2", noon)
	if err := Write(&text, []Fault{first, second}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "answers 429 to all requests") || !strings.HasSuffix(lines[1], "  testbed fault delete f1") ||
		!strings.HasSuffix(lines[2], second.Ends.Local().Format(time.TimeOnly)) {
		t.Errorf("table:\n%s", text.String())
	}
	changed := must(t, "cache/beta", "recreate-service", nil)
	changed.Outcome = "10.96.0.7, before that 10.96.0.6"
	if got := changed.String(); got != "cache/beta has a new Service: 10.96.0.7, before that 10.96.0.6" {
		t.Errorf("one line: %s", got)
	}
	if got := first.String(); got != "fault f1: upstream/alpha answers 429 to all requests, until testbed fault delete f1" {
		t.Errorf("one line: %s", got)
	}
}
