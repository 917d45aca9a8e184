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

// sysResource reports whether containers of the engine at the endpoint can have CAP_SYS_RESOURCE.
// Containers get only capabilities in the bounding set of the process that listens on the engine's
// socket. For a remote engine, sysResource returns true.
func sysResource(endpoint string) bool {
	path, local := socketPath(endpoint)
	if !local {
		return true
	}
	bounding, err := boundingSet(path)
	// After an error: the engine may be in another PID namespace, or a proxy may own the socket.
	return err != nil || bounding&(1<<capability.CAP_SYS_RESOURCE) != 0
}

// boundingSet returns the capability bounding set of the process that listens on the socket.
func boundingSet(path string) (uint64, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *syscall.Ucred
	var peerErr error
	if err := raw.Control(func(fd uintptr) {
		peer, peerErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || peerErr != nil {
		return 0, errors.Join(err, peerErr)
	}
	process, err := procfs.NewProc(int(peer.Pid))
	if err != nil {
		return 0, err
	}
	status, err := process.NewStatus()
	return status.CapBnd, err
}
