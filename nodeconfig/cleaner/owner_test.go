package cleaner_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

// ownedByOthers are files of the node's owner, by kind. None contains the extension's mark itself,
// although some link to a file that does.
var ownedByOthers = map[string]func(n *testNode, file string) error{
	"an absolute link": func(_ *testNode, file string) error { return os.Symlink("/opt/owner/hosts.toml", file) },
	"a link to a file with the mark": func(n *testNode, file string) error {
		n.write("/etc/containerd/marked", 0o644, hostsTOML(alpha))
		return os.Symlink("../../marked", file)
	},
	"a dangling link":     func(_ *testNode, file string) error { return os.Symlink("nowhere", file) },
	"a link to itself":    func(_ *testNode, file string) error { return os.Symlink(nodeconfig.HostsFile, file) },
	"a folder":            func(_ *testNode, file string) error { return os.Mkdir(file, 0o755) },
	"a named pipe":        func(_ *testNode, file string) error { return syscall.Mkfifo(file, 0o644) },
	"a socket":            func(_ *testNode, file string) error { return syscall.Mknod(file, syscall.S_IFSOCK|0o644, 0) },
	"an unreadable file":  func(_ *testNode, file string) error { return os.WriteFile(file, nil, 0) },
	"in an absolute link": func(_ *testNode, file string) error { return linkFolder(file, "/opt/owner") },
	"in a loop of links":  func(_ *testNode, file string) error { return linkFolder(file, filepath.Base(filepath.Dir(file))) },
}

// A folder of the owner may even have the name of a temporary file.
func TestTemporaryFilesAreFiles(t *testing.T) {
	n := newTestNode(t)
	file := nodeconfig.CertsDir + "/.configure-containerd-registries.d/hosts.toml"
	n.write(file, 0o644, unmanaged)
	n.mustClean(removeAlpha)
	n.read(file)
}

func linkFolder(file, target string) error {
	folder := filepath.Dir(file)
	if err := os.Remove(folder); err != nil {
		return err
	}
	return os.Symlink(target, folder)
}

// A file that is not regular, or cannot be read, belongs to the node's owner. It is not removed,
// and must not prevent the deletion of a cache.
func TestFilesOfTheOwnerBlockNothing(t *testing.T) {
	for name, create := range ownedByOthers {
		for where, upstream := range map[string]string{"of the removed upstream": alpha.Upstream, "of another one": "owner.test"} {
			for task, request := range map[string]cleaner.Request{"upstream removed": removeAlpha, "disabled": disableAll} {
				t.Run(strings.Join([]string{name, where, task}, ", "), func(t *testing.T) {
					n := newTestNode(t)
					file := filepath.Join(n.root, nodeconfig.HostsPath(upstream))
					if err := os.RemoveAll(filepath.Dir(file)); err != nil {
						t.Fatal(err)
					}
					if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := create(n, file); err != nil {
						t.Fatal(err)
					}
					before, _ := os.Lstat(file)
					n.asOrdinaryUser()
					n.mustClean(request)
					if after, err := os.Lstat(file); before != nil && (err != nil || !os.SameFile(before, after)) {
						t.Errorf("the owner's file is changed: %v", err)
					}
					if _, err := os.Lstat(filepath.Join(n.root, alphaHosts)); upstream != alpha.Upstream && !os.IsNotExist(err) {
						t.Errorf("the extension's file is not removed: %v", err)
					}
				})
			}
		}
	}
}

// asOrdinaryUser makes file modes apply for the rest of the test. They apply to the cleaner, which
// has no capabilities, but not to tests that run as root.
func (n *testNode) asOrdinaryUser() {
	n.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	if err := os.Chmod(filepath.Dir(n.root), 0o755); err != nil {
		n.t.Fatal(err)
	}
	err := filepath.WalkDir(n.root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		n.t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}
