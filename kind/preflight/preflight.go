package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const gib = 1 << 30

// Requirements is what the testbed needs from its host.
type Requirements struct {
	// Disk is the space that must be free.
	Disk []Space
	// MemoryBytes is the total memory of the host, free or not.
	MemoryBytes uint64
	// InotifyInstances and InotifyWatches are the minimum of fs.inotify.max_user_(instances|watches).
	InotifyInstances, InotifyWatches uint64
	// GoVersion is the oldest Go that builds this module, for example "go1.26.3".
	GoVersion string
}

// Space is free space on a file system.
type Space struct {
	// Directory is on that file system. If it does not exist, its closest existing parent counts.
	Directory string
	Bytes     uint64
}

// Defaults returns the requirements of both clusters, the build of the node image and the
// scenarios. It leaves out the disk, which depends on what already exists. The inotify limits are
// those in kind's documentation (known issues, "too many open files").
func Defaults() Requirements {
	return Requirements{
		MemoryBytes:      6 * gib,
		InotifyInstances: 512,
		InotifyWatches:   524288,
		GoVersion:        "go1.26.3",
	}
}

// Failure is one failed check.
type Failure struct {
	// Problem is what the host has and what it needs, for example "2.0 GiB of memory, 6.0 GiB needed".
	Problem string
	// Fix is what a person can do about it.
	Fix string
}

// Failures is the error of failed checks. It is an environment error (exit code 3).
type Failures struct {
	List []Failure
}

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
	host, err := readHost(ctx, needed.Disk)
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
	host, err := readHost(ctx, needed.Disk)
	if err != nil {
		return Host{}, nil, fmt.Errorf("checking the host: %w", err)
	}
	return host, evaluate(host, needed), nil
}

// CheckDisk returns *Failures if the host does not have the disk space.
func CheckDisk(needed []Space) error {
	found, err := readDisk(needed)
	if err != nil {
		return fmt.Errorf("checking the disk: %w", err)
	}
	if failure := checkDisk(Host{Disk: found}, Requirements{Disk: needed}); failure != nil {
		return &Failures{List: []Failure{*failure}}
	}
	return nil
}
