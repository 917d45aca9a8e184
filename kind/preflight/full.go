package preflight

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// leastFree is what a file system has left when it counts as full. What fails below is no use in reading: an etcd that cannot
	// write is a cluster that does not become ready, minutes later.
	leastFree = 32 << 20
	// fullInterval is short beside the time in which a disk loses leastFree.
	fullInterval = time.Second
)

// Full is a file system that has no room any more. It is an error of the environment (exit code 3).
type Full struct {
	Space
	// Past says that there was none when something was to be written: who failed for that may have given room back since.
	Past bool
}

// EnvironmentError marks the error for internal/program.
func (f *Full) EnvironmentError() {}

// Error is one line: what is full; what a person can do about it.
func (f *Full) Error() string {
	if f.Past {
		return fmt.Sprintf("the disk was full: no space was left on a device, and %.1f MiB are left at %s now; "+
			"free some space (df, df -i) and run it again", float64(f.Bytes)/(1<<20), f.Directory)
	}
	return fmt.Sprintf("the disk is full: %.1f MiB are left at %s; free some space and run it again",
		float64(f.Bytes)/(1<<20), f.Directory)
}

// AwaitFull returns a *Full as soon as the file system of one of the directories is full, and nil when ctx ends before. One whose
// free space cannot be read is passed over.
func AwaitFull(ctx context.Context, directories ...string) *Full {
	var found *Full
	_ = wait.PollUntilContextCancel(ctx, fullInterval, true, func(context.Context) (bool, error) {
		found = FindFull(directories...)
		return found != nil, nil
	})
	return found
}

// FindFull returns the first of the directories whose file system is full, or nil.
func FindFull(directories ...string) *Full {
	for _, directory := range directories {
		if path, free, err := diskFree(directory); err == nil && free < leastFree {
			return &Full{Space: Space{path, free}}
		}
	}
	return nil
}

// WasFull returns, for an error that tells of no space left on a device, the file system of the directories that has the least;
// otherwise nil. The text counts: most of what writes is another program, and the error is what it has printed. Limits of the kernel
// that are told in the same words, on inotify and cgroups, are none of a disk.
func WasFull(err error, directories ...string) *Full {
	if err == nil {
		return nil
	}
	text := strings.ToLower(err.Error())
	if !strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, "inotify") || strings.Contains(text, "cgroup") {
		return nil
	}
	var least *Full
	for _, directory := range directories {
		if path, free, err := diskFree(directory); err == nil && (least == nil || free < least.Bytes) {
			least = &Full{Space{path, free}, true}
		}
	}
	return least
}
