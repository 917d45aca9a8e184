package bringup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Both clusters, the build of the node image and the scenarios need these values. The inotify
// limits are from kind's documentation (known issues, "too many open files").
const (
	gib             = 1 << 30
	memoryNeeded    = 6 * gib
	instancesNeeded = 512
	watchesNeeded   = 524288
)

const (
	cgroupDir     = "/sys/fs/cgroup"
	inotifyDir    = "/proc/sys/fs/inotify/"
	instancesFile = inotifyDir + "max_user_instances"
	watchesFile   = inotifyDir + "max_user_watches"
)

// space is free space on the file system of a directory.
type space struct {
	directory string // if it does not exist, its closest existing parent counts
	bytes     uint64
}

// Machine contains the properties of this machine that Up depends on.
type Machine struct {
	needed, disk       []space // the space that must be free, and the space that is free, in the same order
	memory             uint64  // the total memory in bytes, or this cgroup's limit if that is lower
	instances, watches uint64  // limits of inotify
	Warning            string  // what will fail although the machine meets the requirements, or empty
}

// Failure is a requirement that this machine does not meet.
type Failure struct {
	// Problem names what the machine has and what it needs, for example "2.0 GiB of memory, 6.0 GiB
	// needed".
	Problem string `json:"problem"`
	Fix     string `json:"fix"` // what the user can do
}

// Failures is the error of a machine that does not meet the requirements. It is an environment
// error (exit code 3).
type Failures struct{ List []Failure }

// EnvironmentError marks the error as an environment error, see internal/program.
func (f *Failures) EnvironmentError() {}

// Error returns one line for each failure, with its fix.
func (f *Failures) Error() string {
	lines := []string{"this machine does not meet the testbed's requirements:"}
	for _, failure := range f.List {
		lines = append(lines, "  "+failure.Problem+": "+failure.Fix)
	}
	return strings.Join(lines, "\n")
}

// checkMachine returns *Failures if this machine does not meet the requirements. As root it raises
// inotify limits that are too low; it changes nothing else.
func checkMachine(ctx context.Context, t *kind.Testbed) error {
	machine, err := Inspect(ctx, t.Extension)
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 && machine.raiseInotify() {
		progress.Note(ctx, "inotify limits raised")
	}
	progress.Note(ctx, "%s", machine)
	if machine.Warning != "" {
		progress.Note(ctx, "warning: %s", machine.Warning)
	}
	if failed := machine.Failures(); len(failed) > 0 {
		return &Failures{List: failed}
	}
	return nil
}

// Inspect returns the properties of this machine, on which the extension will run. It changes
// nothing.
func Inspect(ctx context.Context, extension kind.Extension) (Machine, error) {
	disk, err := spaceNeeded(ctx)
	if err != nil {
		return Machine{}, err
	}
	return readMachine(disk, extension.CheckDisk)
}

// String returns a summary for a progress line.
func (m Machine) String() string {
	text := size(m.memory) + " memory"
	if len(m.disk) > 0 {
		text = size(m.disk[0].bytes) + " disk, " + text
	}
	return text
}

func size(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/gib) }

// Failures returns the requirements that the machine does not meet, in a fixed order.
func (m Machine) Failures() []Failure {
	var failed []Failure
	var short []string
	for i, needed := range m.needed {
		if found := m.disk[i]; found.bytes < needed.bytes {
			short = append(short, fmt.Sprintf("%s free at %s, %s needed", size(found.bytes), found.directory, size(needed.bytes)))
		}
	}
	if len(short) > 0 {
		failed = append(failed, Failure{strings.Join(short, "; "), "free some space, or use a larger disk: set data-root in " +
			"/etc/docker/daemon.json for Docker's data, XDG_CACHE_HOME for the build cache"})
	}
	if m.memory < memoryNeeded {
		failed = append(failed, Failure{fmt.Sprintf("%s of memory, %s needed", size(m.memory), size(memoryNeeded)),
			"use a larger machine, or raise the memory limit of the container that this runs in"})
	}
	if m.instances < instancesNeeded || m.watches < watchesNeeded {
		failed = append(failed, Failure{
			fmt.Sprintf("%d inotify instances and %d watches, %d and %d needed", m.instances, m.watches, instancesNeeded, watchesNeeded),
			fmt.Sprintf("run as root: sysctl -w fs.inotify.max_user_instances=%d fs.inotify.max_user_watches=%d", instancesNeeded, watchesNeeded),
		})
	}
	return failed
}

func readMachine(needed []space, checkDisk func(total, free uint64) string) (Machine, error) {
	m := Machine{needed: needed}
	var err error
	for i, wanted := range needed {
		found, total, diskErr := freeSpace(wanted.directory)
		m.disk, err = append(m.disk, found), errors.Join(err, diskErr)
		if checkDisk == nil || len(needed) == 1 || i > 0 || diskErr != nil {
			continue // not the disk of a local engine, which has the volumes
		}
		if warning := checkDisk(total, found.bytes); warning != "" {
			m.Warning = found.directory + ": " + warning
		}
	}
	var system unix.Sysinfo_t
	err = errors.Join(err, unix.Sysinfo(&system), readNumber(instancesFile, &m.instances), readNumber(watchesFile, &m.watches))
	if err != nil {
		return Machine{}, fmt.Errorf("check this machine: %w", err)
	}
	m.memory = min(system.Totalram*uint64(system.Unit), memoryLimit(cgroupDir))
	return m, nil
}

// freeSpace returns the space that unprivileged processes can use at a directory or its closest
// existing parent, and the size of the file system in bytes.
func freeSpace(directory string) (free space, total uint64, err error) {
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(directory, &stat)
		if err == nil {
			return space{directory, stat.Bavail * uint64(stat.Bsize)}, stat.Blocks * uint64(stat.Bsize), nil
		}
		parent := filepath.Dir(directory)
		if !errors.Is(err, fs.ErrNotExist) || parent == directory {
			return space{}, 0, fmt.Errorf("free space at %s: %w", directory, err)
		}
		directory = parent
	}
}

// memoryLimit returns the memory limit of the cgroup mounted at dir, which in a container is that
// of the container. It returns math.MaxUint64 if it reads no number, as with "max" in version 2.
func memoryLimit(dir string) uint64 {
	for _, file := range []string{"memory.max", filepath.Join("memory", "memory.limit_in_bytes")} { // version 2, version 1
		var limit uint64
		if err := readNumber(filepath.Join(dir, file), &limit); err == nil {
			return limit
		}
	}
	return math.MaxUint64
}

func readNumber(path string, number *uint64) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	*number, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return err
}

// raiseInotify raises limits that are too low, until the next boot. If this fails, for example in a
// container, Failures reports the limit.
func (m *Machine) raiseInotify() (raised bool) {
	raise := func(file string, limit *uint64, needed uint64) {
		if *limit >= needed || os.WriteFile(file, []byte(strconv.FormatUint(needed, 10)), 0) != nil {
			return
		}
		*limit, raised = needed, true
	}
	raise(instancesFile, &m.instances, instancesNeeded)
	raise(watchesFile, &m.watches, watchesNeeded)
	return raised
}
