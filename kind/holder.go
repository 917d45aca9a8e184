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
// the kernel's: nothing is decided by this text.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// signLock writes who this process is into the lock, which it holds. The file stays the same one. Where there is no room for it
// the lock holds all the same: Down has to work on a full disk.
func (s state) signLock() error {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	data, err := json.Marshal(holder{PID: os.Getpid(), Command: shorten(command, maxCommand), Since: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	if err := os.WriteFile(s.lockPath(), data, 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("sign the lock: %w", err)
	}
	return nil
}

// holder says who holds the lock, after a colon; it is empty if that is not known.
func (s state) holder() string {
	data, err := os.ReadFile(s.lockPath())
	if err != nil {
		return ""
	}
	return describeHolder(data, time.Now(), func(pid int) bool { return unix.Kill(pid, 0) == nil })
}

// describeHolder describes the holder, unless the text is that of an earlier one that has ended: the present one is about to write.
func describeHolder(data []byte, now time.Time, alive func(pid int) bool) string {
	var h holder
	if json.Unmarshal(data, &h) != nil || h.PID <= 0 || !alive(h.PID) {
		return ""
	}
	return fmt.Sprintf(": %s (process %d, for %s)", h.Command, h.PID, now.Sub(h.Since).Round(time.Second))
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
