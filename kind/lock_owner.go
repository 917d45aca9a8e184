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

// maxCommand bounds how much of a command line is shown, in bytes.
const maxCommand = 120

// holder is what a process writes into the lock of a testbed that it holds, for the message of the next one. The lock itself is
// the kernel's: this text decides nothing but whether it is this very process that keeps a testbed for a run (turn.checkRun).
type holder struct {
	PID       int       `json:"pid"`
	Command   string    `json:"command"`
	Directory string    `json:"directory,omitempty"`
	Since     time.Time `json:"since"`
}

// sign writes who this process is into a lock that it holds. The file stays the same one. Where there is no room for it the lock
// holds all the same: Down has to work on a full disk.
func (t lockFiles) sign(path string) error {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	data, err := json.Marshal(holder{
		PID: os.Getpid(), Command: shorten(command, maxCommand), Directory: t.directory, Since: time.Now().UTC(),
	})
	if err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("sign the lock: %w", err)
	}
	return nil
}

// holder says who holds the lock, after a colon; it is empty if that is not known.
func (t lockFiles) holder(path string) string {
	return readHolder(path).describe(t.directory, time.Now(), func(pid int) bool { return unix.Kill(pid, 0) == nil })
}

// readHolder returns who has signed the lock last, maybe a process that has ended; nil if that is not known.
func readHolder(path string) *holder {
	data, err := os.ReadFile(path)
	h := &holder{}
	if err != nil || json.Unmarshal(data, h) != nil || h.PID <= 0 {
		return nil
	}
	return h
}

// describe describes the holder, and from where it works unless that is here. It describes none that has ended: the present one is
// about to write.
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
