package preflight

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const gib = 1 << 30

// Requirements is what the testbed needs from its host.
type Requirements struct {
	Disk        []Space // the space that must be free
	MemoryBytes uint64  // the total memory of the host, free or not
	// InotifyInstances and InotifyWatches are the minimum of fs.inotify.max_user_(instances|watches).
	InotifyInstances, InotifyWatches uint64
}

// Space is free space on a file system.
type Space struct {
	// Directory is on that file system. If it does not exist, its closest existing parent counts.
	Directory string
	Bytes     uint64
}

// Defaults returns the requirements of both clusters, the build of the node image and the
// scenarios. The disk is left out, because the needed space depends on what already exists. The
// inotify limits are those in kind's documentation (known issues, "too many open files").
func Defaults() Requirements {
	return Requirements{MemoryBytes: 6 * gib, InotifyInstances: 512, InotifyWatches: 524288}
}

// Failure is one failed check.
type Failure struct {
	// Problem is what the host has and what it needs, for example "2.0 GiB of memory, 6.0 GiB needed".
	Problem string `json:"problem"`
	Fix     string `json:"fix"` // what the user can do
}

// Failures is the error of failed checks. It is an environment error (exit code 3).
type Failures struct{ List []Failure }

// EnvironmentError marks the error for internal/program.
func (f *Failures) EnvironmentError() {}

// Error returns one line for each failure, with its fix.
func (f *Failures) Error() string {
	lines := []string{"this machine does not meet the testbed's requirements:"}
	for _, failure := range f.List {
		lines = append(lines, "  "+failure.Problem+": "+failure.Fix)
	}
	return strings.Join(lines, "\n")
}

// Check returns *Failures if the host does not meet the requirements. As root it raises inotify
// limits that are too low; it changes nothing else.
func Check(ctx context.Context, needed Requirements) error {
	host, err := readHost(needed.Disk)
	if err != nil {
		return fmt.Errorf("checking the host: %w", err)
	}
	raised, err := raiseInotify(&host, needed)
	if err != nil {
		return err
	}
	if raised {
		progress.Note(ctx, "inotify limits raised")
	}
	progress.Note(ctx, "%s", host)
	if failed := evaluate(host, needed); len(failed) > 0 {
		return &Failures{List: failed}
	}
	return nil
}

// Inspect returns the host and the failed checks. It changes nothing.
func Inspect(ctx context.Context, needed Requirements) (Host, []Failure, error) {
	host, err := readHost(needed.Disk)
	if err != nil {
		return Host{}, nil, fmt.Errorf("checking the host: %w", err)
	}
	return host, evaluate(host, needed), nil
}

const (
	// leastFree is the free space below which a file system counts as full. A full disk causes
	// misleading errors: for example, a cluster does not become ready because etcd cannot write.
	leastFree    = 32 << 20
	fullInterval = time.Second // between two checks of AwaitFull
)

// Full is the error of a full file system. It is an environment error (exit code 3).
type Full struct{ Space }

// EnvironmentError marks the error for internal/program.
func (f *Full) EnvironmentError() {}

// Error returns one line: which file system is full, and what to do.
func (f *Full) Error() string {
	return fmt.Sprintf("the disk is full: %.1f MiB are left at %s; free some space and run it again", float64(f.Bytes)/(1<<20), f.Directory)
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
			return &Full{Space{path, free}}
		}
	}
	return nil
}
