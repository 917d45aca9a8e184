package cluster

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// freezer is the mount point of cgroup v1's freezer.
const freezer = "/sys/fs/cgroup/freezer"

// thaw resumes the frozen processes of a container, and of containers in it, so that they can be
// killed. runc freezes a cgroup while it changes it. If runc is killed then, for example because
// the machine stops while a pod starts, the cgroup stays frozen. Under cgroup v1 a frozen process
// takes no signal, and the engine waits for it forever. thaw ignores errors, since removing the
// container reports them. root is the freezer's mount point, which may be missing.
func thaw(root, container string) {
	if container == "" {
		return // "" would match every container on this machine
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "freezer.state" || !strings.Contains(path, container) {
			return nil //nolint:nilerr // a cgroup may disappear at any time
		}
		if state, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(state)) != "THAWED" {
			_ = os.WriteFile(path, []byte("THAWED"), 0)
		}
		return nil
	})
}
