package kind

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// maxCommand limits a stored command line, in bytes.
const maxCommand = 120

// lockOwner describes the process that holds a lock. The process writes this into the lock file,
// for the errors of other processes and for checkReservation. The lock itself is in the kernel.
type lockOwner struct {
	PID int `json:"pid"`
	// Started is the start time of the process in clock ticks since boot. Together with PID it
	// identifies the process: after its end or a reboot, another process may get the same PID.
	Started   uint64    `json:"started"`
	Command   string    `json:"command"`
	Directory string    `json:"directory,omitempty"`
	Since     time.Time `json:"since"`
}

// writeOwner describes this process in a lock file. It ignores a full disk, so that Down can run.
func (l lockFiles) writeOwner(path string) error {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	o := lockOwner{PID: os.Getpid(), Command: shorten(command, maxCommand), Directory: l.directory, Since: time.Now().UTC()}
	var data []byte
	var err error
	if o.Started, err = startOf(o.PID); err == nil {
		data, err = json.Marshal(o)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("write the owner of the lock: %w", err)
	}
	return nil
}

// lockOwner returns ": " and a description of the process that holds a lock, or "" if that process
// is unknown.
func (l lockFiles) lockOwner(path string) string {
	return readLockOwner(path).describe(l.directory, time.Now(), startOf)
}

// startOf returns the start time of a process in clock ticks since boot. It is an error if there is
// no such process.
func startOf(pid int) (uint64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("find process %d: %w", pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	return stat.Starttime, nil
}

// readLockOwner returns the last known owner of a lock, or nil. The process may have ended.
func readLockOwner(path string) *lockOwner {
	data, err := os.ReadFile(path)
	o := &lockOwner{}
	if err != nil || json.Unmarshal(data, o) != nil || o.PID <= 0 {
		return nil
	}
	return o
}

// runs reports whether a process with the PID and start time of the owner exists. The argument
// startOf returns the start time of a process.
func (o *lockOwner) runs(startOf func(pid int) (uint64, error)) bool {
	started, err := startOf(o.PID)
	return err == nil && started == o.Started
}

// describe describes the owner. It names the owner's checkout unless that is this one (here). If
// the owner has ended, the result is "": a newer owner may not have written the file yet.
func (o *lockOwner) describe(here string, now time.Time, startOf func(pid int) (uint64, error)) string {
	if o == nil || !o.runs(startOf) {
		return ""
	}
	where := ""
	if o.Directory != "" && o.Directory != here {
		where = " in " + o.Directory
	}
	return fmt.Sprintf(": %s (process %d%s, for %s)", o.Command, o.PID, where, now.Sub(o.Since).Round(time.Second))
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
