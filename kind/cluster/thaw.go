package cluster

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// freezer is where cgroup v1 has its freezer.
const freezer = "/sys/fs/cgroup/freezer"

// thaw lets frozen processes of the container, and of containers in it, go on, so that they can be killed. runc freezes a
// cgroup while it changes it; if it is killed then, as when a machine is stopped while a pod starts, the cgroup stays frozen.
// Under cgroup v1 a frozen process takes no signal, and the engine waits for its end without one. What cannot be thawed, the
// removal reports. root is the freezer's; where there is none, nothing is done.
func thaw(root, container string) {
	if container == "" {
		return // it would be every container of this machine
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "freezer.state" || !strings.Contains(path, container) {
			return nil //nolint:nilerr // a cgroup may go at any time
		}
		if state, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(state)) != "THAWED" {
			_ = os.WriteFile(path, []byte("THAWED"), 0)
		}
		return nil
	})
}
