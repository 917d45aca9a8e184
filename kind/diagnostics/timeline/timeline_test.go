package timeline

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

var collected = time.Date(2026, 11, 22, 1, 42, 20, 0, time.UTC)

// TestBuild compares the timeline of the bundle in testdata/recreated with a golden file.
func TestBuild(t *testing.T) {
	all := Build(bundle.Read(os.DirFS("../testdata/recreated"), collected))
	var out bytes.Buffer
	if err := Write(&out, all); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "timeline.txt", out.String())
	for i, e := range all {
		if e.File == "" || e.Source == "" || i > 0 && e.Time.Before(all[i-1].Time) {
			t.Errorf("entry %d is not in order: %+v", i, e)
		}
	}
}

func TestCollapse(t *testing.T) {
	entry := func(second int, source, text string) Entry {
		return Entry{Time: collected.Add(time.Duration(second) * time.Second), Source: source, Text: text}
	}
	got := collapse([]Entry{
		entry(0, "a", "retry 1 of 0123456789abcdef"), entry(1, "b", "other"), entry(2, "a", "retry 2 of fedcba9876543210"),
		entry(3, "a", "retry 3 of x"), entry(33, "a", "retry 4 of\n00000000-0000-4abc-8def-0123456789ab"),
	})
	want := []int{2, 1, 1, 1}
	for i, e := range got {
		if i >= len(want) || e.Count != want[i] {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if len(got) != len(want) || !got[0].Last.Equal(collected.Add(2*time.Second)) {
		t.Errorf("got %+v", got)
	}
}

func TestShape(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"dial 10.0.0.1:5000 after 2000 ms", "dial 10.0.0.1:5000 after 17 ms", true},
		{"dial 10.0.0.1:5000", "dial 10.0.0.2:5000", false},
		{"read 10.0.0.1:34567", "read 10.0.0.1:45678", true},
		{"state 01a200d2-9849-7a50-b29f-03f47da29c47", "state 01a200d3-ffff-7a50-b29f-03f47da29c47", true},
		{"pull of web", "pull of shop", false},
	} {
		if same := Shape(tc.a) == Shape(tc.b); same != tc.same {
			t.Errorf("%q and %q: %q, %q", tc.a, tc.b, Shape(tc.a), Shape(tc.b))
		}
	}
}

func TestSince(t *testing.T) {
	var all []Entry
	for i := range 5 {
		at := collected.Add(time.Duration(i) * time.Second)
		all = append(all, Entry{Time: at, Last: at})
	}
	all[0].Last = collected.Add(time.Hour)
	if got := Since(all, collected.Add(3*time.Second), 9); len(got) != 3 || !got[0].Last.After(collected.Add(time.Minute)) {
		t.Errorf("got %+v", got)
	}
	if got := Since(all, collected, 2); len(got) != 2 || got[1] != all[4] {
		t.Errorf("got %+v", got)
	}
}

func TestPulls(t *testing.T) {
	line := func(second int, message, problem string) logline.Line {
		return logline.Line{Time: collected.Add(time.Duration(second) * time.Second), Message: message, Fields: map[string]string{"error": problem}}
	}
	got := Pulls([]logline.Line{
		line(0, `PullImage "a"`, ""), line(1, `PullImage "b"`, ""), line(2, `PullImage "a"`, ""), line(3, `PullImage "b" failed`, `rpc error: "x": EOF`),
		line(4, `PullImage "a" returns image reference "y"`, ""), line(5, `PullImage "c" returns image reference "y"`, ""), line(6, `PullImage "d"`, ""),
		line(9, "starting containerd", ""), line(10, `PullImage "e"`, ""),
	})
	want := []struct {
		image, failure string
		took           time.Duration
		open           bool
	}{
		{"b", "EOF", 2 * time.Second, false}, {"a", "", 4 * time.Second, false}, {"c", "", 0, false},
		{"d", "interrupted by a restart of containerd", 3 * time.Second, false}, {"e", "", 0, true},
	}
	for i, pull := range got {
		if i >= len(want) || pull.Image != want[i].image || pull.Failure != want[i].failure || pull.Took() != want[i].took || pull.Ended.IsZero() != want[i].open {
			t.Errorf("pull %d: %+v", i, pull)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d pulls", len(got))
	}
}
