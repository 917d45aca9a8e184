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
		"warm tag, " + Hangs:                {State: Warm, Tag: true, Clients: 1, Fault: Hangs},
		"cold 33.6 MB, " + Cuts:             {State: Cold, Size: 32 << 20, Clients: 1, Fault: Cuts},
	} {
		if got := row.Name(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRows: each state, delay, size, herd and fault is measured, and no row twice.
func TestRows(t *testing.T) {
	covers := func(what string, is func(Row) bool) {
		if !slices.ContainsFunc(rows, is) {
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
	for _, fault := range []string{Hangs, Cuts, Full} {
		covers(fault, func(r Row) bool { return r.Fault == fault })
	}
	names := map[string]bool{}
	for _, row := range rows {
		if names[row.Name()] {
			t.Errorf("two rows have the name %s", row.Name())
		}
		names[row.Name()] = true
		if row.State == Cold && row.Clients != 1 || row.Clients < 1 || row.Blobs < 1 || row.Size == smallBlob {
			t.Errorf("%s: %d clients, %d blobs of %d bytes", row.Name(), row.Clients, row.Blobs, row.Size)
		}
	}
}
