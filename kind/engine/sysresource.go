package engine

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/sys/capability"
)

// sysResource reports whether containers of the engine at the endpoint can have CAP_SYS_RESOURCE:
// they get no capability that is missing in the bounding set of the process that listens on a local
// socket. For a remote engine it assumes true.
func sysResource(endpoint string) bool {
	path, local := socketPath(endpoint)
	if !local {
		return true
	}
	status, err := listenerStatus(path)
	if err != nil {
		// Unknown: the engine runs in another PID namespace, or a proxy listens on the socket.
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
	}); err != nil {
		return "", err
	}
	if peerErr != nil {
		return "", peerErr
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", peer.Pid))
	return string(status), err
}

// boundingSet returns the CapBnd bit mask of /proc/PID/status, see proc_pid_status(5).
func boundingSet(status string) (uint64, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return 0, fmt.Errorf("no CapBnd in the process status")
}
