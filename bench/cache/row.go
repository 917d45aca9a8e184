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

// Sizes of blobs, in bytes.
const (
	MB = 1_000_000
	GB = 1000 * MB
)

// lineRate is the rate of a real line, in bytes per second.
const lineRate = 100 * MB

// Row is one comparison.
type Row struct {
	State string        `json:"state"`
	Delay time.Duration `json:"delayNanoseconds"`
	Rate  int           `json:"bytesPerSecond"` // of the line, 0 without a limit
	Size  int64         `json:"blobBytes"`
	// Clients download at once, and each of them Blobs blobs one after another: different ones, except
	// for Warm.
	Clients int `json:"clients"`
	Blobs   int `json:"blobs"`
}

// Name describes the row, such as "cold 10 MB, 20 ms, 100 MB/s".
func (r Row) Name() string {
	name := fmt.Sprintf("%s %s", r.State, Size(r.Size))
	if r.Clients > 1 {
		name += fmt.Sprintf(" × %d", r.Clients)
	}
	if r.Delay > 0 {
		name += fmt.Sprintf(", %d ms", r.Delay.Milliseconds())
	}
	if r.Rate > 0 {
		name += fmt.Sprintf(", %s/s", Size(int64(r.Rate)))
	}
	return name
}

// Size renders bytes in MB or GB.
func Size(bytes int64) string {
	if bytes >= GB {
		return fmt.Sprintf("%g GB", float64(bytes)/GB)
	}
	return fmt.Sprintf("%g MB", float64(bytes)/MB)
}

// different returns how many different blobs the clients download.
func (r Row) different() int {
	if r.State == Warm {
		return 1
	}
	return r.Blobs
}

// loopback reports whether nothing but this machine limits the line.
func (r Row) loopback() bool { return r.Delay == 0 && r.Rate == 0 }

const near, far = 20 * time.Millisecond, 100 * time.Millisecond

// quickRows take less than two minutes with the faults.
var quickRows = []Row{
	{State: Warm, Size: 10 * MB, Clients: 100, Blobs: 3},
	{State: Warm, Size: 100 * MB, Clients: 1, Blobs: 10},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 5},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 2},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 1, Delay: near, Rate: lineRate},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 2, Delay: far, Rate: lineRate},
	{State: Herd, Size: 10 * MB, Clients: 100, Blobs: 1},
	{State: Herd, Size: 10 * MB, Clients: 20, Blobs: 1, Delay: near, Rate: lineRate},
}

// allRows take less than 15 minutes with the faults.
var allRows = []Row{
	{State: Warm, Size: 10 * MB, Clients: 1, Blobs: 50},
	{State: Warm, Size: 10 * MB, Clients: 20, Blobs: 5},
	{State: Warm, Size: 10 * MB, Clients: 100, Blobs: 3},
	{State: Warm, Size: 10 * MB, Clients: 500, Blobs: 1},
	{State: Warm, Size: 100 * MB, Clients: 1, Blobs: 10},
	{State: Warm, Size: 100 * MB, Clients: 20, Blobs: 1},
	{State: Warm, Size: GB, Clients: 1, Blobs: 3},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 5},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 3},
	{State: Cold, Size: GB, Clients: 1, Blobs: 1},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 5, Delay: near, Rate: lineRate},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 1, Delay: near, Rate: lineRate},
	{State: Cold, Size: GB, Clients: 1, Blobs: 1, Delay: near, Rate: lineRate},
	{State: Cold, Size: 10 * MB, Clients: 1, Blobs: 5, Delay: far, Rate: lineRate},
	{State: Cold, Size: 100 * MB, Clients: 1, Blobs: 1, Delay: far, Rate: lineRate},
	{State: Herd, Size: 100 * MB, Clients: 20, Blobs: 1},
	{State: Herd, Size: 10 * MB, Clients: 100, Blobs: 1},
	{State: Herd, Size: 10 * MB, Clients: 500, Blobs: 1},
	{State: Herd, Size: 10 * MB, Clients: 20, Blobs: 1, Delay: near, Rate: lineRate},
	{State: Herd, Size: 10 * MB, Clients: 100, Blobs: 1, Delay: far, Rate: lineRate},
}
