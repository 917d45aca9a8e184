package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

const (
	cgroupDir     = "/sys/fs/cgroup"
	inotifyDir    = "/proc/sys/fs/inotify/"
	instancesFile = inotifyDir + "max_user_instances"
	watchesFile   = inotifyDir + "max_user_watches"
)

func readHost(disks []Space) (Host, error) {
	disk, diskErr := readDisk(disks)
	memory, memoryErr := readMemory(procfs.DefaultMountPoint, cgroupDir)
	h := Host{Disk: disk, Memory: memory}
	return h, errors.Join(diskErr, memoryErr,
		readNumber(instancesFile, &h.InotifyInstances), readNumber(watchesFile, &h.InotifyWatches))
}

func readDisk(required []Space) ([]Space, error) {
	var found []Space
	for _, space := range required {
		path, free, err := diskFree(space.Directory)
		if err != nil {
			return nil, err
		}
		found = append(found, Space{path, free})
	}
	return found, nil
}

// diskFree returns the space for unprivileged processes at dir or its closest existing parent.
func diskFree(dir string) (path string, free uint64, err error) {
	for {
		var stat syscall.Statfs_t
		err := syscall.Statfs(dir, &stat)
		if err == nil {
			return dir, stat.Bavail * uint64(stat.Bsize), nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return "", 0, fmt.Errorf("free space at %s: %w", dir, err)
		}
		dir = parent
	}
}

// readMemory returns the memory of the machine, or the limit of the cgroup if that is less.
func readMemory(mount, cgroupDir string) (uint64, error) {
	proc, err := procfs.NewFS(mount)
	if err != nil {
		return 0, err
	}
	memory, err := proc.Meminfo()
	if err == nil && memory.MemTotalBytes == nil {
		err = fmt.Errorf("%s/meminfo has no MemTotal", mount)
	}
	if err != nil {
		return 0, err
	}
	return min(*memory.MemTotalBytes, memoryLimit(cgroupDir)), nil
}

// memoryLimit returns the limit of the cgroup mounted at dir, which in a container is the limit of
// the container. It returns math.MaxUint64 if there is no limit or it cannot be read.
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

// raiseInotify raises insufficient limits if this process is root. The next boot resets the limits.
func raiseInotify(h *Host, r Requirements) (raised bool, err error) {
	if os.Geteuid() != 0 {
		return false, nil
	}
	for _, limit := range []struct {
		file   string
		now    *uint64
		needed uint64
	}{
		{instancesFile, &h.InotifyInstances, r.InotifyInstances},
		{watchesFile, &h.InotifyWatches, r.InotifyWatches},
	} {
		if *limit.now >= limit.needed {
			continue
		}
		// A container may lack the right to do this. The check then reports the limit with its fix.
		if err := os.WriteFile(limit.file, []byte(strconv.FormatUint(limit.needed, 10)), 0); err != nil {
			continue
		}
		if err := readNumber(limit.file, limit.now); err != nil {
			return false, err
		}
		raised = true
	}
	return raised, nil
}
