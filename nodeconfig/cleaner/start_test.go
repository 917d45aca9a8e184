package cleaner_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

// systemd imitates the state of the real one: it reads units only when it reloads them, and a job
// continues without its client.
type systemd struct {
	n       *testNode
	loaded  string // the unit at the last reload
	running string // the running unit, empty if it is stopped
	before  map[string]func()
	fails   string
}

var errFails = errors.New("systemd fails")

func (s *systemd) call(ctx context.Context, name string, effect func()) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if before := s.before[name]; before != nil {
		before()
	}
	if s.fails != name || name == "stop" { // a job also ends if nobody can wait for it
		effect()
	}
	if s.fails == name {
		return errFails
	}
	return ctx.Err()
}

func (s *systemd) Stop(ctx context.Context, _ string) error {
	return s.call(ctx, "stop", func() { s.running = "" })
}

func (s *systemd) Start(ctx context.Context, _ string) error {
	return s.call(ctx, "start", func() { s.running = s.loaded })
}

func (s *systemd) Reload(ctx context.Context) error {
	return s.call(ctx, "reload", func() { s.loaded = s.n.read(nodeconfig.UnitPath) })
}

// TestUnitRunsWhateverHappens: the other caches of a node need the script, whichever step fails or
// is interrupted. The next cleaner completes the work: the script runs without the upstream.
func TestUnitRunsWhateverHappens(t *testing.T) {
	both, onlyBeta := nodeconfig.Unit([]nodeconfig.Registry{alpha, beta}, 0), nodeconfig.Unit([]nodeconfig.Registry{beta}, 0)
	change := func(mode fs.FileMode, file string) func(n *testNode) {
		return func(n *testNode) { n.must(os.Chmod(filepath.Join(n.root, file), mode)) }
	}
	for name, test := range map[string]struct {
		fails       string // a call of systemd
		interrupted string // the call during which SIGTERM arrives
		during      string // the call before which breaks is called
		breaks      func(n *testNode)
		repair      func(n *testNode)
	}{
		"the stop fails":              {fails: "stop"},
		"the reload fails":            {fails: "reload"},
		"terminated during stop":      {interrupted: "stop"},
		"terminated during reload":    {interrupted: "reload"},
		"terminated during start":     {interrupted: "start"},
		"the unit cannot be read":     {during: "stop", breaks: change(0, nodeconfig.UnitPath), repair: change(0o600, nodeconfig.UnitPath)},
		"the unit cannot be replaced": {during: "stop", breaks: change(0o555, filepath.Dir(nodeconfig.UnitPath)), repair: change(0o755, filepath.Dir(nodeconfig.UnitPath))},
		"a file cannot be removed":    {during: "stop", breaks: change(0o555, filepath.Dir(alphaHosts)), repair: change(0o755, filepath.Dir(alphaHosts))},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.asOrdinaryUser()
			ctx, terminate := context.WithCancel(t.Context())
			defer terminate()
			s := &systemd{n: n, loaded: both, running: both, fails: test.fails, before: map[string]func(){test.interrupted: terminate}}
			if test.breaks != nil {
				s.before[test.during] = func() { test.breaks(n) }
			}
			if err := n.cleanBy(ctx, s, removeAlpha); err == nil && test.interrupted != "start" {
				t.Error("no error")
			}
			if s.running == "" {
				t.Error("the unit is stopped")
			}
			if test.repair != nil {
				test.repair(n)
			}
			s.fails, s.before = "", nil
			n.must(n.cleanBy(t.Context(), s, removeAlpha))
			if s.running != onlyBeta {
				t.Errorf("after the second run the unit runs\n%s", s.running)
			}
			if _, err := os.Lstat(filepath.Join(n.root, alphaHosts)); !os.IsNotExist(err) {
				t.Errorf("after the second run hosts.toml is there: %v", err)
			}
		})
	}
}

// gardener-node-agent may have removed the unit during the stop.
func TestUnitThatIsGoneIsNotStarted(t *testing.T) {
	n := newTestNode(t)
	n.units.onStop = func() { n.remove(nodeconfig.UnitPath) }
	n.mustClean(removeAlpha)
	n.expectCalls(stop)
	n.units.onStop, n.units.fail = nil, "stop"
	if err := n.clean(t.Context(), removeAlpha); err == nil {
		t.Error("no error")
	}
	n.expectCalls(stop)
}

func (n *testNode) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) cleanBy(ctx context.Context, units cleaner.Units, request cleaner.Request) error {
	n.t.Helper()
	root, err := os.OpenRoot(n.root)
	n.must(err)
	defer func() { _ = root.Close() }()
	return cleaner.Clean(ctx, cleaner.Node{Root: root, Units: units, Log: &n.log}, request)
}
