package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/sys/capability"
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
	state, _, _ = strings.Cut(statusField(status, "State"), " ")
	return statusField(status, "Name"), state
}

// statusField returns a field of /proc/PID/status, see proc_pid_status(5), or "".
func statusField(status, name string) string {
	for line := range strings.Lines(status) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
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

// sysResource reports whether containers of the engine at the endpoint can have CAP_SYS_RESOURCE.
// Containers get only capabilities in the bounding set of the process that listens on the engine's
// socket. For a remote engine, sysResource returns true.
func sysResource(endpoint string) bool {
	path, local := socketPath(endpoint)
	if !local {
		return true
	}
	status, err := listenerStatus(path)
	if err != nil {
		// The engine may run in another PID namespace, or a proxy may listen on the socket.
		return true
	}
	bounding, err := boundingSet(status)
	return err != nil || bounding&(1<<capability.CAP_SYS_RESOURCE) != 0
}

// listenerStatus returns /proc/PID/status of the process that listens on the socket.
func listenerStatus(path string) (string, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", err
	}
	var peer *syscall.Ucred
	var peerErr error
	if err := raw.Control(func(fd uintptr) {
		peer, peerErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || peerErr != nil {
		return "", errors.Join(err, peerErr)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", peer.Pid))
	return string(status), err
}

func boundingSet(status string) (uint64, error) {
	return strconv.ParseUint(statusField(status, "CapBnd"), 16, 64)
}
