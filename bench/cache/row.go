package cache

import (
	"fmt"
	"time"
)

// States of the blobs of a row before its clients start.
const (
	Warm = "warm" // the contender has stored the blob
	Cold = "cold" // the contender has not seen the blob, and one client asks for it
	Herd = "herd" // the contender has not seen the blob, and all clients ask for it at once
)

// Faults of the upstream and of the volume.
const (
	Hangs = "the upstream accepts requests and never answers"
	Cuts  = "the upstream cuts each answer after 10 MiB"
	Full  = "the volume has 64 MiB"

	cutAfter, fullVolume = 10 << 20, 64 << 20
)

// Sizes of blobs, in bytes.
const (
	MB = 1_000_000
	GB = 1000 * MB
)

// lineRate is the rate of a limited line, in bytes per second.
const lineRate = 100 * MB

// Row describes one comparison of the contenders.
type Row struct {
	State string
	Delay time.Duration
	Rate  int // of the line, in bytes per second, 0 without a limit
	Size  int64
	// Clients download at once. Each downloads Blobs blobs one after another: for Warm always the same
	// one, else different ones.
	Clients, Blobs int
	Fault          string // empty for a measurement of speed
	Tag            bool   // the clients ask for a tag instead of a blob
	quick          bool   // part of a quick run
}

// Name returns a description of the row, such as "cold 10 MB, 20 ms, 100 MB/s".
func (r Row) Name() string {
	what := Size(r.Size)
	if r.Tag {
		what = "tag"
	}
	name := r.State + " " + what
	if r.Clients > 1 {
		name += fmt.Sprintf(" × %d", r.Clients)
	}
	if r.Delay > 0 {
		name += fmt.Sprintf(", %d ms", r.Delay.Milliseconds())
	}
	if r.Rate > 0 {
		name += fmt.Sprintf(", %s/s", Size(int64(r.Rate)))
	}
	if r.Fault != "" {
		name += ", " + r.Fault
	}
	return name
}

// Size renders bytes in MB or GB.
func Size(bytes int64) string {
	if bytes >= GB {
		return fmt.Sprintf("%.3g GB", float64(bytes)/GB)
	}
	return fmt.Sprintf("%.3g MB", float64(bytes)/MB)
}

const near, far = 20 * time.Millisecond, 100 * time.Millisecond

// rows take less than 15 minutes, and the quick ones less than two.
var rows = []Row{
	{State: Warm, Size: 10 * MB, Clients: 1, Blobs: 50},
	{State: Warm, Size: 10 * MB, Clients: 20, Blobs: 5},
	{State: Warm, Size: 10 * MB, Clients: 100, Blobs: 3, quick: true},
	{State: Warm, Size: 10 * MB, Clients: 500, Blobs: 1},
	{State: Warm, Size: 100 * MB, Clients: 1, Blobs: 10, quick: true},
	{State: Warm, Size: 100 * MB, Clients: 20, Blobs: 1},
	{State: Warm, Size: GB, Clients: 1, Blobs: 3},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 5, quick: true},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 3, quick: true},
	{State: Cold, Size: GB, Clients: 1, Blobs: 1},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 5, Delay: near, Rate: lineRate},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 1, Delay: near, Rate: lineRate, quick: true},
	{State: Cold, Size: GB, Clients: 1, Blobs: 1, Delay: near, Rate: lineRate},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 5, Delay: far, Rate: lineRate, quick: true},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 1, Delay: far, Rate: lineRate},
	{State: Herd, Size: 100 * MB, Clients: 20, Blobs: 1},
	{State: Herd, Size: 10 * MB, Clients: 100, Blobs: 1, quick: true},
	{State: Herd, Size: 10 * MB, Clients: 500, Blobs: 1},
	{State: Herd, Size: 10 * MB, Clients: 20, Blobs: 1, Delay: near, Rate: lineRate, quick: true},
	{State: Herd, Size: 10 * MB, Clients: 100, Blobs: 1, Delay: far, Rate: lineRate},

	{State: Warm, Size: 10 * MB, Clients: 1, Blobs: 1, Fault: Hangs, quick: true},
	{State: Warm, Tag: true, Clients: 1, Blobs: 1, Fault: Hangs, quick: true},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 1, Fault: Hangs, quick: true},
	{State: Cold, Size: 32 << 20, Clients: 1, Blobs: 1, Fault: Cuts, quick: true},
	{State: Herd, Size: 100 * MB, Clients: 16, Blobs: 1, Fault: Full, quick: true},
}
