//go:build e2e

package plantedbugs

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/gardener-extensions/registry-cache/internal/program" // silences dependencies that log when they are initialized
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
)

const (
	runTimeout  = 15 * time.Minute // of one run, with build and rollout
	stopTimeout = 4 * time.Minute  // for the clean-up of an interrupted run
)

// TestScenariosCatchBugs first runs the scenarios without a bug: they must pass, otherwise a
// failure proves nothing. For each bug it then rolls out the bug, runs its scenario, which must
// fail for the bug's reason, and restores the testbed. It then does the same in a garden. The
// arguments of the program are the names of bugs; the default is all bugs. With KEEP=1 the last bug
// stays in the testbed.
func TestScenariosCatchBugs(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	names := flag.Args()
	for _, name := range names {
		if !slices.ContainsFunc(slices.Concat(bugs, inGarden), func(b bug) bool { return b.name == name }) {
			t.Fatalf("unknown planted bug %q; docs/planted-bugs.md lists them", name)
		}
	}
	choose := func(from []bug) []bug {
		return slices.DeleteFunc(slices.Clone(from), func(b bug) bool { return len(names) > 0 && !slices.Contains(names, b.name) })
	}
	keep, garden := os.Getenv("KEEP") != "", choose(inGarden)
	catchAll(ctx, t, "", choose(bugs), keep && len(garden) == 0)
	catchAll(ctx, t, gardenFile, garden, keep) // last, because a garden recreates the seed
}

// catchAll plants the bugs on a testbed with this configuration; empty means the default. With
// keep, the last bug stays in the testbed.
func catchAll(ctx context.Context, t *testing.T, config string, chosen []bug, keep bool) {
	t.Helper()
	if len(chosen) == 0 {
		return
	}
	var scenarios []string
	for _, bug := range chosen {
		scenarios = append(scenarios, bug.scenario)
	}
	r, name := run{root: root(t), program: filepath.Join(root(t), "bin", "e2e.test"), config: config, results: "_artifacts"}, "none"
	if config != "" {
		lane := strings.TrimSuffix(filepath.Base(config), filepath.Ext(config))
		r.results, name = filepath.Join(r.results, lane), name+"-"+lane
	}
	r.folder = folder(t, name)
	summary := r.scenarios(ctx, t, bringup.UpTimeout+runTimeout, scenarios...)
	for _, scenario := range scenarios {
		if o, err := find(summary, scenario); err != nil || o.Result != "passed" {
			t.Fatalf("without a bug, %s %s: %s %v", scenario, o.Result, o.reason(), err)
		}
	}
	for i, bug := range chosen {
		t.Run(bug.name, func(t *testing.T) { r.catch(ctx, t, bug, keep && i == len(chosen)-1) })
		if ctx.Err() != nil {
			t.Fatalf("interrupted: the testbed may run the bug %s; `make up` removes it", bug.name)
		}
	}
}

// run describes a run of the program that contains the scenarios.
type run struct {
	root, program string
	config        string   // the value of CONFIG
	results       string   // the folder of root into which the scenarios write their results
	folder        string   // for the log and the results
	planted       []string // the environment that plants a bug
}

// catch fails the test unless the bug's scenario fails for the bug's reason.
func (r run) catch(ctx context.Context, t *testing.T, bug bug, keep bool) {
	t.Helper()
	planted := r
	planted.folder = folder(t, bug.name)
	overlay, err := bug.overlay(r.root, planted.folder)
	if err != nil {
		t.Fatal(err)
	}
	planted.planted = []string{"GOFLAGS=" + os.Getenv("GOFLAGS") + " '-overlay=" + overlay + "'"}
	if strings.HasPrefix(bug.File, "cachetest/") || strings.HasPrefix(bug.File, "examples/") { // no image contains these files
		planted.program = filepath.Join(planted.folder, "e2e.test")
		if err := planted.start(ctx, t, nil, "go", "test", "-c", "-tags", "e2e", "-o", planted.program, "./e2e"); err != nil {
			t.Fatalf("build the scenarios with the bug: %v", err)
		}
	}
	if !keep {
		defer func() {
			if err := r.start(ctx, t, nil, "bin/testbed", "up"); err != nil {
				t.Errorf("restore the testbed: %v; run: make up", err)
			}
		}()
	}
	o, err := verdict(planted.scenarios(ctx, t, runTimeout, bug.scenario), bug)
	if err != nil {
		t.Fatalf("not caught: %v", err)
	}
	t.Logf("caught after %.0f s: %s", o.Seconds, o.reason())
}

// scenarios runs the scenarios on the testbed, moves their results to the folder, and returns the
// content of summary.json. It does not remove earlier results, which may belong to another run.
func (r run) scenarios(ctx context.Context, t *testing.T, timeout time.Duration, names ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begun, results := time.Now(), filepath.Join(r.root, r.results)
	summary := filepath.Join(results, "summary.json")
	err := r.start(ctx, t, []string{"RUN=^(" + strings.Join(names, "|") + ")$", "KEEP=1", "CONFIG=" + r.config, "LANE=", "LIST=", "LEAVE="}, r.program)
	// Exit code 1 means that scenarios have failed. A run that could not start writes no results.
	if exit, failed := errors.AsType[*exec.ExitError](err); err != nil && (!failed || exit.ExitCode() != 1) {
		t.Fatalf("run the scenarios: %v; see %s", err, r.log())
	}
	if info, err := os.Stat(summary); err != nil || info.ModTime().Before(begun) {
		t.Fatalf("the scenarios wrote no results; see %s", r.log())
	}
	content, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(results, filepath.Join(r.folder, "_artifacts")); err != nil {
		t.Fatal(err)
	}
	return content
}

func (r run) log() string { return filepath.Join(r.folder, "run.log") }

// start runs a program in a process group of its own. When ctx ends, the program receives one
// SIGINT. A second one, from a terminal, would kill the scenarios before they clean up.
func (r run) start(ctx context.Context, t *testing.T, environment []string, program string, arguments ...string) error {
	t.Helper()
	log, err := os.OpenFile(r.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, log, log
	cmd.Env = slices.Concat(os.Environ(), r.planted, environment)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopTimeout
	return cmd.Run()
}

// folder returns a new folder for the log and the results of a run. `make down` removes it.
func folder(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(root(t), kind.DefaultDirectory, kind.DefaultPrefix, "mutants", name)
	if err := errors.Join(os.RemoveAll(path), os.MkdirAll(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}
