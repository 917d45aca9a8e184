package cleaner_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

const (
	unmanagedHosts = "/etc/containerd/certs.d/unmanaged.test/hosts.toml"
	unmanagedUnit  = "/etc/systemd/system/unmanaged.service"
	stop           = "stop configure-containerd-registries"
	start          = "start configure-containerd-registries"
)

var (
	alphaHosts  = nodeconfig.HostsPath(alpha.Upstream)
	betaHosts   = nodeconfig.HostsPath(beta.Upstream)
	removeAlpha = cleaner.Request{Upstreams: []string{alpha.Upstream}}
	disableAll  = cleaner.Request{Upstreams: []string{alpha.Upstream, beta.Upstream}, All: true}
)

func TestRemoveUpstream(t *testing.T) {
	n := newTestNode(t)
	n.units.onStart = func() {
		if registries, err := nodeconfig.ParseUnit(n.read(nodeconfig.UnitPath)); err != nil || len(registries) != 1 || !reflect.DeepEqual(registries[0], beta) {
			t.Errorf("the unit is started with %v, %v", registries, err)
		}
	}
	n.mustClean(removeAlpha)
	n.expectCalls(stop, "reload", start)
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, unmanagedHosts, unmanagedUnit)
	if n.read(betaHosts) != hostsTOML(beta) || n.read(unmanagedHosts) != unmanaged {
		t.Error("another hosts.toml is changed")
	}
	if info, err := os.Stat(filepath.Join(n.root, nodeconfig.UnitPath)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the unit is %v, %v, want 0600", info.Mode(), err)
	}

	n.mustClean(removeAlpha)
	n.expectCalls(stop, "reload", start) // the unit is the same, but systemd may run an earlier one
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, unmanagedHosts, unmanagedUnit)
}

func TestRemoveLastUpstreamKeepsTheUnit(t *testing.T) {
	n := newTestNode(t)
	n.mustClean(cleaner.Request{Upstreams: []string{alpha.Upstream, beta.Upstream}})
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, unmanagedHosts, unmanagedUnit)
	if n.read(nodeconfig.UnitPath) != nodeconfig.Unit(nil, 0) {
		t.Errorf("the unit is:\n%s", n.read(nodeconfig.UnitPath))
	}
}

// gardener-node-agent reports a node as unhealthy if its last OperatingSystemConfig contains a unit
// that is not active.
func TestDisableKeepsTheUnitRunning(t *testing.T) {
	n := newTestNode(t)
	n.write(nodeconfig.HostsPath("forgotten.test"), 0o644, hostsTOML(alpha))
	n.units.onStart = func() {
		if got := n.read(nodeconfig.UnitPath); got != nodeconfig.Unit(nil, 0) {
			t.Errorf("the unit is started as\n%s", got)
		}
	}
	n.mustClean(disableAll)
	n.expectCalls(stop, "reload", start)
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, unmanagedHosts, unmanagedUnit)

	n.mustClean(disableAll)
	n.expectCalls(stop, "reload", start)
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, unmanagedHosts, unmanagedUnit)
}

func TestDisableReplacesAnUnknownUnit(t *testing.T) {
	n := newTestNode(t)
	n.write(nodeconfig.UnitPath, 0o644, "[Service]\nExecStart=/bin/sh -c something\n")
	n.mustClean(disableAll)
	n.expectCalls(stop, "reload", start)
	if got := n.read(nodeconfig.UnitPath); got != nodeconfig.Unit(nil, 0) {
		t.Errorf("the unit is:\n%s", got)
	}
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, unmanagedHosts, unmanagedUnit)
}

// A waiting script may write its hosts.toml until the unit has stopped.
func TestScriptCannotRecreateWhatWasCleaned(t *testing.T) {
	for name, request := range map[string]cleaner.Request{"upstream removed": removeAlpha, "disabled": disableAll} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.remove(alphaHosts)
			n.units.onStop = func() {
				n.write(alphaHosts, 0o644, hostsTOML(alpha))
				n.write("/etc/containerd/certs.d/.configure-containerd-registries.Ab12", 0o600, "half")
			}
			n.mustClean(request)
			entries, err := os.ReadDir(filepath.Join(n.root, nodeconfig.CertsDir))
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if entry.Name() == alpha.Upstream || strings.HasPrefix(entry.Name(), ".") {
					t.Errorf("%s was not removed", entry.Name())
				}
			}
		})
	}
}

// Stopping the unit takes up to half a minute. Meanwhile gardener-node-agent may write a new unit.
func TestUnitWrittenDuringTheStopStays(t *testing.T) {
	gamma := nodeconfig.Registry{Upstream: "gamma.test", Endpoint: "http://10.0.0.3:5000", UpstreamURL: "https://gamma.test"}
	for name, test := range map[string]struct{ came, want []nodeconfig.Registry }{
		"without the removed one": {[]nodeconfig.Registry{beta, gamma}, []nodeconfig.Registry{beta, gamma}},
		"with the removed one":    {[]nodeconfig.Registry{alpha, gamma}, []nodeconfig.Registry{gamma}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.units.onStop = func() { n.write(nodeconfig.UnitPath, 0o600, nodeconfig.Unit(test.came, 0)) }
			n.mustClean(removeAlpha)
			if got := n.read(nodeconfig.UnitPath); got != nodeconfig.Unit(test.want, 0) {
				t.Errorf("the unit is:\n%s", got)
			}
		})
	}
}

func TestForeignFilesStay(t *testing.T) {
	for name, request := range map[string]cleaner.Request{"upstream removed": removeAlpha, "disabled": disableAll} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.write(alphaHosts, 0o644, unmanaged+nodeconfig.Marker)
			n.write(filepath.Dir(betaHosts)+"/ca.crt", 0o644, "")
			n.mustClean(request)
			if n.read(alphaHosts) != unmanaged+nodeconfig.Marker {
				t.Error("a hosts.toml without Marker is changed")
			}
			n.read(filepath.Dir(betaHosts) + "/ca.crt")
			if !strings.Contains(n.log.String(), "was not written by the extension, skipped") {
				t.Errorf("the log does not report the skipped file:\n%s", &n.log)
			}
		})
	}
}

func TestNodeWithoutAnything(t *testing.T) {
	for name, request := range map[string]cleaner.Request{"upstream removed": removeAlpha, "disabled": disableAll} {
		t.Run(name, func(t *testing.T) {
			n := &testNode{t: t, root: t.TempDir(), units: &fakeUnits{}}
			n.mustClean(request)
			n.expectFiles("/.")
			if calls := strings.Join(n.units.calls, ","); !strings.HasPrefix(calls, stop) || strings.Contains(calls, "start ") {
				t.Errorf("calls of systemd: %s", calls)
			}
		})
	}
}

func TestUnknownUnitIsLeftStopped(t *testing.T) {
	n := newTestNode(t)
	unknown := "[Service]\nExecStart=/bin/sh -c something\n"
	n.write(nodeconfig.UnitPath, 0o644, unknown)
	n.mustClean(removeAlpha)
	n.expectCalls(stop)
	if n.read(nodeconfig.UnitPath) != unknown {
		t.Error("a unit that cannot be parsed is changed")
	}
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, unmanagedHosts, unmanagedUnit)
}

func TestFailuresAreReportedAndRepeatable(t *testing.T) {
	for name, test := range map[string]struct {
		request cleaner.Request
		fail    string
		calls   []string
	}{
		"stop before removal":  {removeAlpha, "stop", []string{stop, start}},
		"reload":               {removeAlpha, "reload", []string{stop, "reload", start}},
		"start":                {removeAlpha, "start", []string{stop, "reload", start}},
		"stop when disabled":   {disableAll, "stop", []string{stop, start}},
		"reload when disabled": {disableAll, "reload", []string{stop, "reload", start}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.units.fail = test.fail
			if err := n.clean(t.Context(), test.request); err == nil {
				t.Fatal("no error")
			}
			n.expectCalls(test.calls...)
			if test.fail == "stop" && (n.read(alphaHosts) == "" || n.read(nodeconfig.UnitPath) != nodeconfig.Unit([]nodeconfig.Registry{alpha, beta}, 0)) {
				t.Error("something is changed while the script may still run")
			}
			n.units.fail = ""
			n.mustClean(test.request)
			if _, err := os.Stat(filepath.Join(n.root, alphaHosts)); !os.IsNotExist(err) {
				t.Errorf("the second run does not complete it: %v", err)
			}
		})
	}
}

// If ctx is done during the stop, Clean must still start the unit, because other caches need it.
func TestUnitIsStartedAgainWhenTimeIsUp(t *testing.T) {
	n := newTestNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	n.units.onStop = cancel
	_ = n.clean(ctx, removeAlpha)
	n.expectCalls(stop, "reload", start)
}

func TestLinksDoNotLeadOutOfTheNode(t *testing.T) {
	n := newTestNode(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, nodeconfig.HostsFile), []byte(hostsTOML(alpha)), 0o600); err != nil {
		t.Fatal(err)
	}
	n.remove(alphaHosts)
	n.remove(filepath.Dir(alphaHosts))
	if err := os.Symlink(outside, filepath.Join(n.root, filepath.Dir(alphaHosts))); err != nil {
		t.Fatal(err)
	}
	n.mustClean(removeAlpha)
	if _, err := os.Stat(filepath.Join(outside, nodeconfig.HostsFile)); err != nil {
		t.Errorf("a file outside the node is removed: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		request cleaner.Request
		valid   bool
	}{
		"an upstream":    {removeAlpha, true},
		"IPv6":           {cleaner.Request{Upstreams: []string{"[::1]:5000"}}, true},
		"all of them":    {cleaner.Request{All: true}, true},
		"nothing":        {cleaner.Request{}, false},
		"empty":          {cleaner.Request{Upstreams: []string{""}}, false},
		"parent":         {cleaner.Request{Upstreams: []string{".."}}, false},
		"this directory": {cleaner.Request{Upstreams: []string{"a.test", "."}}, false},
		"a path":         {cleaner.Request{Upstreams: []string{"../a.test"}}, false},
		"endpoints":      {cleaner.Request{All: true, Endpoints: []string{"http://10.0.0.1:5000", "https://[fd00::1]:5000"}}, true},
		"only endpoints": {cleaner.Request{Endpoints: []string{"http://10.0.0.1:5000"}}, false},
		"no endpoint":    {cleaner.Request{All: true, Endpoints: []string{""}}, false},
		"no scheme":      {cleaner.Request{All: true, Endpoints: []string{"10.0.0.1:5000"}}, false},
		"no host":        {cleaner.Request{All: true, Endpoints: []string{"http://"}}, false},
		"not HTTP":       {cleaner.Request{All: true, Endpoints: []string{"file:///etc"}}, false},
		"with a path":    {cleaner.Request{All: true, Endpoints: []string{"http://10.0.0.1:5000/v2"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			if err := n.clean(t.Context(), test.request); (err == nil) != test.valid {
				t.Errorf("got %v", err)
			}
			if !test.valid {
				n.expectCalls()
			}
		})
	}
}
