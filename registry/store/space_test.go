package store

import (
	"math"
	"syscall"
	"testing"
)

// TestSpaceOf checks that sizes are neither negative nor so large that sums overflow.
func TestSpaceOf(t *testing.T) {
	const most = math.MaxInt64 / 1024
	for name, test := range map[string]struct {
		stat syscall.Statfs_t
		want Space
	}{
		"20 GiB": {
			syscall.Statfs_t{Bsize: 4096, Blocks: 5 << 20, Bfree: 3 << 20, Bavail: 2 << 20, Files: 1000, Ffree: 10},
			Space{Bytes: 20 << 30, FreeBytes: 8 << 30, Inodes: 1000, FreeInodes: 10},
		},
		"no limit of inodes": {syscall.Statfs_t{Bsize: 4096, Blocks: 1, Bavail: 1}, Space{Bytes: 4096, FreeBytes: 4096}},
		"8 EiB":              {syscall.Statfs_t{Bsize: 4096, Blocks: 1 << 51, Bavail: 1<<51 - 1}, Space{Bytes: most, FreeBytes: most}},
		"16 EiB":             {syscall.Statfs_t{Bsize: 1 << 20, Blocks: 1 << 44, Bavail: 1 << 44}, Space{Bytes: most, FreeBytes: most}},
		"all bits": {
			syscall.Statfs_t{Bsize: 4096, Blocks: math.MaxUint64, Bavail: math.MaxUint64, Files: math.MaxUint64, Ffree: math.MaxUint64},
			Space{most, most, most, most},
		},
		"full, of 8 EiB":      {syscall.Statfs_t{Bsize: 4096, Blocks: 1 << 51}, Space{Bytes: most}},
		"negative block size": {syscall.Statfs_t{Bsize: -1, Blocks: 100, Bavail: 100}, Space{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spaceOf(test.stat); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
