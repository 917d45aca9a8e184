package cleaner_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

var (
	alpha = nodeconfig.Registry{Upstream: "alpha.test", Endpoint: "http://10.0.0.1:5000", UpstreamURL: "https://alpha.test"}
	beta  = nodeconfig.Registry{Upstream: "beta.test:5000", Endpoint: "http://10.0.0.2:5000", UpstreamURL: "https://beta.test:5000"}
)

const unmanaged = "server = \"https://mirror.example.com\"\n"

// fakeUnits is a fake systemd that records calls and runs nothing. The e2e scenarios use a real
// systemd.
type fakeUnits struct {
	calls   []string
	fail    string // the call that fails
	onStop  func() // what the script does before the unit has stopped
	onStart func()
}

func (f *fakeUnits) call(name, unit string) error {
	f.calls = append(f.calls, strings.TrimSpace(name+" "+strings.TrimSuffix(unit, ".service")))
	if name == f.fail {
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (f *fakeUnits) Stop(_ context.Context, unit string) error {
	if f.onStop != nil {
		f.onStop()
	}
	return f.call("stop", unit)
}

func (f *fakeUnits) Start(ctx context.Context, unit string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.onStart != nil {
		f.onStart()
	}
	return f.call("start", unit)
}

func (f *fakeUnits) Reload(context.Context) error { return f.call("reload", "") }

// hostsTOML returns a hosts.toml of the extension. The tests of nodeconfig check what the script
// writes.
func hostsTOML(r nodeconfig.Registry) string {
	certificates := "certificates = '''\n" + string(r.EndpointCA) + string(r.UpstreamCA) + "'''\n"
	return nodeconfig.Marker + "\n" + certificates + "server = \"" + r.UpstreamURL + "\"\n\n[host.\"" + r.Endpoint + "\"]\n"
}

// testNode is a directory that represents a node.
type testNode struct {
	t     *testing.T
	root  string
	units *fakeUnits
	log   bytes.Buffer
}

// newTestNode returns a node with caches for alpha and beta, and with unmanaged files.
func newTestNode(t *testing.T) *testNode {
	n := &testNode{t: t, root: t.TempDir(), units: &fakeUnits{}}
	n.write(nodeconfig.UnitPath, 0o600, nodeconfig.Unit([]nodeconfig.Registry{alpha, beta}, 0))
	n.write(nodeconfig.ScriptPath, nodeconfig.ScriptMode, nodeconfig.Script())
	n.write(nodeconfig.HostsPath(alpha.Upstream), 0o644, hostsTOML(alpha))
	n.write(nodeconfig.HostsPath(beta.Upstream), 0o644, hostsTOML(beta))
	n.write(nodeconfig.HostsPath("unmanaged.test"), 0o644, unmanaged)
	n.write("/etc/systemd/system/unmanaged.service", 0o644, "[Unit]\n")
	return n
}

func (n *testNode) write(file string, mode fs.FileMode, content string) {
	n.t.Helper()
	file = filepath.Join(n.root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) remove(file string) {
	n.t.Helper()
	if err := os.Remove(filepath.Join(n.root, file)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) read(file string) string {
	n.t.Helper()
	content, err := os.ReadFile(filepath.Join(n.root, file))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(content)
}

func (n *testNode) clean(ctx context.Context, request cleaner.Request) error {
	n.t.Helper()
	return n.cleanBy(ctx, n.units, request)
}

func (n *testNode) mustClean(request cleaner.Request) {
	n.t.Helper()
	if err := n.clean(n.t.Context(), request); err != nil {
		n.t.Fatal(err)
	}
}

// expectFiles checks the paths of all files and of empty directories.
func (n *testNode) expectFiles(want ...string) {
	n.t.Helper()
	var got []string
	err := fs.WalkDir(os.DirFS(n.root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		children, _ := os.ReadDir(filepath.Join(n.root, path))
		if !entry.IsDir() || len(children) == 0 {
			got = append(got, "/"+path)
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		n.t.Errorf("files on the node:\ngot  %q\nwant %q", got, want)
	}
}

func (n *testNode) expectCalls(want ...string) {
	n.t.Helper()
	if !slices.Equal(n.units.calls, want) {
		n.t.Errorf("calls of systemd:\ngot  %q\nwant %q", n.units.calls, want)
	}
	n.units.calls = nil
}
