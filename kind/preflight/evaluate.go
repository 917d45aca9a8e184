package preflight

import (
	"fmt"
	"go/version"
	"slices"
	"strings"
)

// Host is what the checks look at.
type Host struct {
	// Disk is the free space where some is required, in the order of the requirements.
	Disk []Space
	// Memory is what there is in all, or the limit of our cgroup if that is less, in bytes.
	Memory uint64
	// CgroupVersion is 1 or 2, or 0 if no cgroup file system is mounted. Version 1 is good enough: the kubelet is told
	// not to refuse it (failCgroupV1).
	CgroupVersion int
	// Controllers are the cgroup controllers at hand.
	Controllers []string
	// InotifyInstances and InotifyWatches are the limits in effect.
	InotifyInstances, InotifyWatches uint64
	// GoVersion is empty where there is no go command.
	GoVersion string
}

// String is a summary for a progress line.
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

// kubeletControllers are those without which the kubelet does not start.
var kubeletControllers = []string{"cpu", "cpuset", "memory", "pids"}

// evaluate returns the checks that fail, in a fixed order.
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
	var found, needed []string
	for i, space := range r.Disk {
		if h.Disk[i].Bytes < space.Bytes {
			found = append(found, size(h.Disk[i].Bytes)+" free at "+h.Disk[i].Directory)
			needed = append(needed, size(space.Bytes))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &Failure{"disk", strings.Join(found, " and "), strings.Join(needed, " and "),
		"free some space, or move it to a larger disk: Docker's by data-root in /etc/docker/daemon.json, the build cache by XDG_CACHE_HOME"}
}

func checkMemory(h Host, r Requirements) *Failure {
	if h.Memory >= r.MemoryBytes {
		return nil
	}
	return &Failure{"memory", size(h.Memory), size(r.MemoryBytes), "use a machine with more of it, or raise the memory limit of the container that this runs in"}
}

func checkCgroups(h Host, _ Requirements) *Failure {
	if h.CgroupVersion == 0 {
		return &Failure{"cgroups", "no cgroup file system", "cgroup v2 (or v1) at /sys/fs/cgroup",
			"mount it: mount -t cgroup2 none /sys/fs/cgroup"}
	}
	var lacking []string
	for _, controller := range kubeletControllers {
		if !slices.Contains(h.Controllers, controller) {
			lacking = append(lacking, controller)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return &Failure{"cgroups", fmt.Sprintf("v%d without %s", h.CgroupVersion, strings.Join(lacking, ", ")),
		"the controllers " + strings.Join(kubeletControllers, ", "),
		"delegate them to this machine, or enable them on the kernel's command line (cgroup_enable=...)"}
}

func checkInotify(h Host, r Requirements) *Failure {
	if h.InotifyInstances >= r.InotifyInstances && h.InotifyWatches >= r.InotifyWatches {
		return nil
	}
	return &Failure{"inotify",
		fmt.Sprintf("max_user_instances %d, max_user_watches %d", h.InotifyInstances, h.InotifyWatches),
		fmt.Sprintf("%d and %d", r.InotifyInstances, r.InotifyWatches),
		fmt.Sprintf("run as root: sysctl -w fs.inotify.max_user_instances=%d fs.inotify.max_user_watches=%d", r.InotifyInstances, r.InotifyWatches)}
}

func checkGo(h Host, r Requirements) *Failure {
	fix := "install it from https://go.dev/dl/, and put it first on the PATH"
	switch {
	case h.GoVersion == "":
		return &Failure{"go", "no go command", r.GoVersion + " or newer", fix}
	case version.Compare(release(h.GoVersion), r.GoVersion) < 0:
		return &Failure{"go", h.GoVersion, r.GoVersion + " or newer", fix}
	}
	return nil
}

// release cuts what distributions and experiments append, as in "go1.26.3 X:nocoverageredesign".
func release(goVersion string) string {
	first, _, _ := strings.Cut(goVersion, " ")
	return first
}
