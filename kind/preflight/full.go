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
	// leastFree is the free space below which a file system counts as full. On a full disk the errors
	// that follow are misleading: an etcd that cannot write, for example, shows up minutes later as a
	// cluster that does not become ready.
	leastFree = 32 << 20
	// fullInterval is short compared with the time it takes to fill leastFree.
	fullInterval = time.Second
)

// Full is the error of a full file system. It is an environment error (exit code 3).
type Full struct {
	Space
	// Earlier is set if a write failed for lack of space. The failed program may have freed space
	// since.
	Earlier bool
}

// EnvironmentError marks the error for internal/program.
func (f *Full) EnvironmentError() {}

// Error returns one line: which file system is full, and what to do.
func (f *Full) Error() string {
	if f.Earlier {
		return fmt.Sprintf("the disk was full: no space was left on a device, and %.1f MiB are left at %s now; "+
			"free some space (df, df -i) and run it again", float64(f.Bytes)/(1<<20), f.Directory)
	}
	return fmt.Sprintf("the disk is full: %.1f MiB are left at %s; free some space and run it again",
		float64(f.Bytes)/(1<<20), f.Directory)
}

// AwaitFull returns a *Full as soon as the file system of one of the directories is full, or nil
// when ctx ends. It ignores a file system whose free space cannot be read.
func AwaitFull(ctx context.Context, directories ...string) *Full {
	var found *Full
	_ = wait.PollUntilContextCancel(ctx, fullInterval, true, func(context.Context) (bool, error) {
		found = FindFull(directories...)
		return found != nil, nil
	})
	return found
}

// FindFull returns the first full file system of the directories, or nil.
func FindFull(directories ...string) *Full {
	for _, directory := range directories {
		if path, free, err := diskFree(directory); err == nil && free < leastFree {
			return &Full{Space: Space{path, free}}
		}
	}
	return nil
}

// WasFull returns, if err reports that no space was left on a device, the file system of the
// directories with the least space, and otherwise nil. It matches the text of err, because most
// writers are other programs and err only has their output. The kernel uses the same text for its
// limits on inotify and cgroups; WasFull ignores those errors.
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
