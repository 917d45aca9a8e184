package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// runningPID returns the process ID in the pid file if a living process of the program has this ID,
// else 0. The pid file alone proves nothing: IDs are reused, and a zombie keeps its ID.
func runningPID(pidFile, program string) (int, error) {
	data, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data))) // 0 for an incomplete file
	var stat procfs.ProcStat                                // empty if the process is gone
	if process, err := procfs.NewProc(pid); err == nil {
		stat, _ = process.Stat()
	}
	if stat.Comm != program || stat.State == "Z" || stat.State == "X" {
		return 0, nil
	}
	return pid, nil
}

// removeStale removes a pid file unless a living process of the program has the ID in it. dockerd
// 20.10 refuses to start while any process, even a zombie or another program, has the ID in its pid
// file.
func removeStale(pidFile, program string) error {
	pid, err := runningPID(pidFile, program)
	if err != nil || pid != 0 {
		return err
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a stale pid file: %w", err)
	}
	return nil
}
