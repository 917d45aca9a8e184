package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const gib = 1 << 30

// Requirements is what the testbed needs of its host.
type Requirements struct {
	// Disk is the space that must be free.
	Disk []Space
	// MemoryBytes is the memory that the host must have in all, used or not.
	MemoryBytes uint64
	// InotifyInstances and InotifyWatches are the least values of fs.inotify.max_user_instances and max_user_watches.
	InotifyInstances, InotifyWatches uint64
	// GoVersion is the oldest Go that builds this module, for example "go1.26.3".
	GoVersion string
}

// Space is room on a file system.
type Space struct {
	// Directory is on that file system. If it does not exist yet, the next existing parent counts.
	Directory string
	Bytes     uint64
}

// Defaults returns what both clusters, the node image's build and the scenarios need, without the disk: that depends on
// what is there already. The inotify limits are those of
// kind's documentation (known issues, "too many open files").
func Defaults() Requirements {
	return Requirements{
		MemoryBytes:      6 * gib,
		InotifyInstances: 512,
		InotifyWatches:   524288,
		GoVersion:        "go1.26.3",
	}
}

// Failure is one check that failed.
type Failure struct {
	// Check names what was checked, Found and Needed say what is there and what should be.
	Check, Found, Needed string
	// Fix is what a person can do about it.
	Fix string
}

// Failures are the checks that failed. It is an error of the environment (exit code 3).
type Failures struct {
	List []Failure
}

// EnvironmentError marks the error for internal/program.
func (f *Failures) EnvironmentError() {}

// Error has one line for each failure, with its fix.
func (f *Failures) Error() string {
	lines := []string{"this machine does not meet the testbed's requirements:"}
	for _, failure := range f.List {
		lines = append(lines, fmt.Sprintf("  %s: %s, needed: %s; %s", failure.Check, failure.Found, failure.Needed, failure.Fix))
	}
	return strings.Join(lines, "\n")
}

// Check looks at the host and returns *Failures if it does not meet the requirements. Inotify limits that are too low
// are raised if we are root; nothing else is changed.
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

// Look returns what there is, and the checks that fail, and changes nothing.
func Look(ctx context.Context, needed Requirements) (Host, []Failure, error) {
	host, err := readHost(ctx, needed.Disk)
	if err != nil {
		return Host{}, nil, fmt.Errorf("checking the host: %w", err)
	}
	return host, evaluate(host, needed), nil
}

// CheckDisk is the part of Check that looks at the disk.
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
