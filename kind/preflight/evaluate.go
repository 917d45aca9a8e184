package preflight

import (
	"fmt"
	"strings"
)

// Host has the properties of the host that the checks evaluate.
type Host struct {
	Disk   []Space // the free space for each required Space, in the same order
	Memory uint64  // the total memory in bytes, or the limit of this cgroup if that is less
	// InotifyInstances and InotifyWatches are the current limits.
	InotifyInstances, InotifyWatches uint64
}

// String returns a summary for a progress line.
func (h Host) String() string {
	text := size(h.Memory) + " memory"
	if len(h.Disk) > 0 {
		text = size(h.Disk[0].Bytes) + " disk, " + text
	}
	return text
}

func size(bytes uint64) string {
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
}

// evaluate returns the failed checks in a fixed order.
func evaluate(h Host, r Requirements) []Failure {
	var failed []Failure
	for _, check := range []func(Host, Requirements) *Failure{checkDisk, checkMemory, checkInotify} {
		if failure := check(h, r); failure != nil {
			failed = append(failed, *failure)
		}
	}
	return failed
}

func checkDisk(h Host, r Requirements) *Failure {
	var short []string
	for i, space := range r.Disk {
		if h.Disk[i].Bytes < space.Bytes {
			short = append(short, fmt.Sprintf("%s free at %s, %s needed", size(h.Disk[i].Bytes), h.Disk[i].Directory, size(space.Bytes)))
		}
	}
	if len(short) == 0 {
		return nil
	}
	return &Failure{strings.Join(short, "; "), "free some space, or use a larger disk: set data-root in /etc/docker/daemon.json " +
		"for Docker's data, XDG_CACHE_HOME for the build cache"}
}

func checkMemory(h Host, r Requirements) *Failure {
	if h.Memory >= r.MemoryBytes {
		return nil
	}
	return &Failure{fmt.Sprintf("%s of memory, %s needed", size(h.Memory), size(r.MemoryBytes)),
		"use a larger machine, or raise the memory limit of the container that this runs in"}
}

func checkInotify(h Host, r Requirements) *Failure {
	if h.InotifyInstances >= r.InotifyInstances && h.InotifyWatches >= r.InotifyWatches {
		return nil
	}
	return &Failure{
		fmt.Sprintf("%d inotify instances and %d watches, %d and %d needed",
			h.InotifyInstances, h.InotifyWatches, r.InotifyInstances, r.InotifyWatches),
		fmt.Sprintf("run as root: sysctl -w fs.inotify.max_user_instances=%d fs.inotify.max_user_watches=%d", r.InotifyInstances, r.InotifyWatches),
	}
}
