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

// holder is what a process writes into a lock file that it holds, for the error that other
// processes get. The lock itself is the kernel's. Only checkReservation decides by a holder:
// whether it is this process.
type holder struct {
	PID       int       `json:"pid"`
	Command   string    `json:"command"`
	Directory string    `json:"directory,omitempty"`
	Since     time.Time `json:"since"`
}

// writeHolder writes this process into a lock file that it holds. It ignores a full disk, since
// Down must work then.
func (l lockFiles) writeHolder(path string) error {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	data, err := json.Marshal(holder{
		PID: os.Getpid(), Command: shorten(command, maxCommand), Directory: l.directory, Since: time.Now().UTC(),
	})
	if err != nil {
		return fmt.Errorf("write the holder of the lock: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("write the holder of the lock: %w", err)
	}
	return nil
}

// holder describes the process that holds a lock, after a colon, or returns an empty string if it
// is not known.
func (l lockFiles) holder(path string) string {
	return readHolder(path).describe(l.directory, time.Now(), func(pid int) bool { return unix.Kill(pid, 0) == nil })
}

// readHolder returns the last holder of a lock, which may have ended, or nil if it is not known.
func readHolder(path string) *holder {
	data, err := os.ReadFile(path)
	h := &holder{}
	if err != nil || json.Unmarshal(data, h) != nil || h.PID <= 0 {
		return nil
	}
	return h
}

// describe describes the holder, with its checkout unless that is here. It returns an empty string
// if the holder has ended: the current one has not written itself yet.
func (h *holder) describe(here string, now time.Time, alive func(pid int) bool) string {
	if h == nil || !alive(h.PID) {
		return ""
	}
	where := ""
	if h.Directory != "" && h.Directory != here {
		where = " in " + h.Directory
	}
	return fmt.Sprintf(": %s (process %d%s, for %s)", h.Command, h.PID, where, now.Sub(h.Since).Round(time.Second))
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
