package preflight

import (
	"fmt"
	"go/version"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Host has the properties of the host that the checks evaluate.
type Host struct {
	Disk   []Space // the free space for each required Space, in the same order
	Memory uint64  // the total memory in bytes, or the limit of this cgroup if that is less
	// CgroupVersion is 1 or 2, or 0 if no cgroup file system is mounted. Version 1 is sufficient: the
	// testbed configures the kubelet to accept it (failCgroupV1).
	CgroupVersion int
	Controllers   []string // the available cgroup controllers
	// InotifyInstances and InotifyWatches are the current limits.
	InotifyInstances, InotifyWatches uint64
	GoVersion                        string // empty if there is no go command
}

// String returns a summary for a progress line.
func (h Host) String() string {
	text := fmt.Sprintf("%s memory, cgroup v%d, %s", size(h.Memory), h.CgroupVersion, h.GoVersion)
	if len(h.Disk) > 0 {
		text = size(h.Disk[0].Bytes) + " disk, " + text
	}
	return text
}

func size(bytes uint64) string {
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
}

// kubeletControllers are the controllers that the kubelet needs to start.
var kubeletControllers = []string{"cpu", "cpuset", "memory", "pids"}

// evaluate returns the failed checks in a fixed order.
func evaluate(h Host, r Requirements) []Failure {
	var failed []Failure
	for _, check := range []func(Host, Requirements) *Failure{checkDisk, checkMemory, checkCgroups, checkInotify, checkGo} {
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

func checkCgroups(h Host, _ Requirements) *Failure {
	if h.CgroupVersion == 0 {
		return &Failure{"no cgroup file system at /sys/fs/cgroup, v2 or v1 needed", "run as root: mount -t cgroup2 none /sys/fs/cgroup"}
	}
	missing := sets.List(sets.New(kubeletControllers...).Delete(h.Controllers...))
	if len(missing) == 0 {
		return nil
	}
	return &Failure{
		fmt.Sprintf("cgroup v%d without controllers %s; %s needed", h.CgroupVersion, strings.Join(missing, ", "), strings.Join(kubeletControllers, ", ")),
		"delegate the missing controllers to this machine, or enable them on the kernel's command line (cgroup_enable=...)",
	}
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

func checkGo(h Host, r Requirements) *Failure {
	needed, fix := r.GoVersion+" or newer needed", "install Go from https://go.dev/dl/ and put it first in PATH"
	release, _, _ := strings.Cut(h.GoVersion, " ") // drop experiments such as "X:nocoverageredesign"
	switch {
	case h.GoVersion == "":
		return &Failure{"no go command, " + needed, fix}
	case version.Compare(release, r.GoVersion) < 0:
		return &Failure{h.GoVersion + ", " + needed, fix}
	}
	return nil
}
