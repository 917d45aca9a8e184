package cache

import (
	"slices"
	"testing"
	"time"
)

func TestName(t *testing.T) {
	for want, row := range map[string]Row{
		"warm 10 MB":                        {State: Warm, Size: 10 * MB, Clients: 1},
		"herd 1 GB × 20, 100 ms, 100 MB/s":  {State: Herd, Size: GB, Clients: 20, Delay: far, Rate: lineRate},
		"cold 1.5 GB, 20 ms":                {State: Cold, Size: GB + GB/2, Clients: 1, Delay: near},
		"herd 100 MB × 500, 20 ms, 10 MB/s": {State: Herd, Size: 100 * MB, Clients: 500, Delay: near, Rate: 10 * MB},
	} {
		if got := row.Name(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRows: each state, delay, size and herd is measured, and no row twice.
func TestRows(t *testing.T) {
	covers := func(what string, is func(Row) bool) {
		if !slices.ContainsFunc(allRows, is) {
			t.Errorf("no row has %s", what)
		}
	}
	for _, delay := range []time.Duration{0, near, far} {
		covers(delay.String(), func(r Row) bool { return r.State == Cold && r.Delay == delay })
	}
	for _, size := range []int64{10 * MB, 100 * MB, GB} {
		for _, state := range []string{Warm, Cold} {
			covers(state+" "+Size(size), func(r Row) bool { return r.State == state && r.Size == size })
		}
	}
	for _, clients := range []int{20, 100, 500} {
		covers("a herd", func(r Row) bool { return r.State == Herd && r.Clients == clients })
	}
	for _, rows := range [][]Row{quickRows, allRows} {
		names := map[string]bool{}
		for _, row := range rows {
			if names[row.Name()] {
				t.Errorf("two rows have the name %s", row.Name())
			}
			names[row.Name()] = true
			if row.State == Cold && row.Clients != 1 || row.Clients < 1 || row.Blobs < 1 {
				t.Errorf("%s: %d clients, %d blobs", row.Name(), row.Clients, row.Blobs)
			}
		}
	}
}

func TestDifferent(t *testing.T) {
	if got := (Row{State: Warm, Blobs: 5}).different(); got != 1 {
		t.Errorf("warm: %d different blobs, want 1", got)
	}
	if got := (Row{State: Cold, Blobs: 5}).different(); got != 5 {
		t.Errorf("cold: %d different blobs, want 5", got)
	}
}
