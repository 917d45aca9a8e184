package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// process returns the ID in the pid file if a living process of that program has it, else 0. The
// pid file alone proves nothing: IDs are reused, and a zombie keeps its ID.
func process(pidFile, program string) (int, error) {
	data, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data))) // 0 for an incomplete file
	if pid <= 0 {
		return 0, nil
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty if the process is gone
	if name, state := parseStatus(string(status)); name != program || state == "Z" || state == "X" {
		return 0, nil
	}
	return pid, nil
}

// parseStatus returns name and state from /proc/PID/status.
func parseStatus(status string) (name, state string) {
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "Name":
			name = strings.TrimSpace(value)
		case "State":
			state, _, _ = strings.Cut(strings.TrimSpace(value), " ")
		}
	}
	return name, state
}

// removeStale removes a pid file unless a living process of that program has the ID. dockerd 20.10
// refuses to start while any process, even a zombie or one of another program, has the ID in its
// pid file.
func removeStale(pidFile, program string) error {
	pid, err := process(pidFile, program)
	if err != nil || pid != 0 {
		return err
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a stale pid file: %w", err)
	}
	return nil
}
