package kind

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxCommand is the longest command line that is stored, in bytes.
const maxCommand = 120

// lockOwner describes the process that holds a lock. The process writes it into the lock file for
// the errors of other processes and for checkReservation. The lock itself is that of the kernel.
type lockOwner struct {
	PID       int       `json:"pid"`
	Command   string    `json:"command"`
	Directory string    `json:"directory,omitempty"`
	Since     time.Time `json:"since"`
}

// writeOwner writes this process into a lock file. It ignores a full disk, so that Down can run.
func (l lockFiles) writeOwner(path string) error {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	data, err := json.Marshal(lockOwner{
		PID: os.Getpid(), Command: shorten(command, maxCommand), Directory: l.directory, Since: time.Now().UTC(),
	})
	if err != nil {
		return fmt.Errorf("write the owner of the lock: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("write the owner of the lock: %w", err)
	}
	return nil
}

// lockOwner returns ": " and a description of the process that holds a lock, or "" if it is
// unknown.
func (l lockFiles) lockOwner(path string) string {
	return readLockOwner(path).describe(l.directory, time.Now(), func(pid int) bool { return unix.Kill(pid, 0) == nil })
}

// readLockOwner returns the last owner of a lock, which may have ended, or nil if it is not known.
func readLockOwner(path string) *lockOwner {
	data, err := os.ReadFile(path)
	o := &lockOwner{}
	if err != nil || json.Unmarshal(data, o) != nil || o.PID <= 0 {
		return nil
	}
	return o
}

// describe describes the owner, with its checkout unless that is the directory here. It returns ""
// if that process has ended, because then the current owner has not written the file yet.
func (o *lockOwner) describe(here string, now time.Time, alive func(pid int) bool) string {
	if o == nil || !alive(o.PID) {
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
