//go:build e2e

package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/export"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// Session holds the testbed of one run, the results so far, and the state that scenarios share.
type Session struct {
	Testbed *kind.Testbed
	keep    bool
	leave   bool // the last scenario of each group undoes nothing
	Full    bool // the steps InFullLane run as well
	Total   int  // the number of scenarios that will run
	Start   time.Time
	sampler *report.Sampler

	Report report.Report
	since  time.Time // the end of the previous scenario

	Seed, Shoot Access
	pause       image.Built // the program that the pulled images run
	Scratch     string
	skipped     string // why this machine cannot run the testbed, or empty
	release     func() // unlocks the testbed at the end of the run
	// Disturbed is true if a scenario has failed since the last reconciliation.
	Disturbed atomic.Bool
}

// NewSession reads CONFIG, KEEP, LEAVE and NODE_IMAGE from the environment. It does not
// start the testbed.
func NewSession(ctx context.Context) (*Session, error) {
	keep, keepErr := yesOrNo("KEEP")
	leave, leaveErr := yesOrNo("LEAVE")
	config, configErr := testbedConfiguration(os.Getenv("CONFIG"))
	if err := errors.Join(keepErr, leaveErr, configErr); err != nil {
		return nil, err
	}
	testbed, err := kind.New(kind.Options{
		Configuration: config, NodeImage: os.Getenv("NODE_IMAGE"), Extension: cachetest.Extension(), Out: os.Stdout,
	})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s := &Session{
		Testbed: testbed, keep: keep || leave, leave: leave, Start: now, since: now, sampler: report.StartSampler(),
	}
	s.Report.Versions = sourceVersions(ctx)
	return s, nil
}

func yesOrNo(name string) (bool, error) {
	value := cmp.Or(os.Getenv(name), "0")
	yes, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%s is %q, want 1 or 0", name, value)
	}
	return yes, nil
}

// Up creates the testbed and prepares the scenarios.
func (s *Session) Up(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	var err error
	if s.release, err = s.Testbed.Reserve(); err == nil {
		_ = os.RemoveAll(Artifacts) // of the previous run
		err = bringup.Up(ctx, s.Testbed)
	}
	if err == nil {
		err = s.prepare(ctx)
	}
	s.Report.SetupError = s.unavailable(err)
	s.write()
	if s.Report.SetupError != nil && !s.usedByOther() {
		reportMissing("setup", s.Diagnose(ctx, "setup", err.Error()))
	}
	return ctx, err
}

// usedByOther reports whether another process uses the testbed. If so, this run must not touch the
// testbed.
func (s *Session) usedByOther() bool { return errors.Is(s.Report.SetupError, kind.ErrBusy) }

// prepare creates the clients and builds the program of the test images.
func (s *Session) prepare(ctx context.Context) (err error) {
	if s.Seed, err = Connect(s.Testbed.Seed.RESTConfig(), kubernetes.SeedScheme); err != nil {
		return err
	}
	if s.Shoot, err = Connect(s.Testbed.Shoot.RESTConfig(), kubernetes.ShootScheme); err != nil {
		return err
	}
	if _, err := fault.Delete(ctx, s.Testbed); err != nil { // a killed run may have left faults
		return err
	}
	// `testbed down` removes this folder, even after a run was killed.
	folder := filepath.Join(kind.DefaultDirectory, s.Testbed.Prefix)
	if s.Scratch, err = os.MkdirTemp(folder, "e2e-"); err != nil {
		return fmt.Errorf("make a folder for the test images: %w", err)
	}
	built, err := image.Build(ctx, s.Scratch, image.Pause())
	if err != nil {
		return fmt.Errorf("build the program of the test images: %w", err)
	}
	s.pause = built[0]
	maps.Copy(s.Report.Versions, nodeVersions(ctx, s.Shoot))
	return nil
}

// Down removes the testbed unless KEEP is set. e2e-framework hides errors, so Down prints them.
func (s *Session) Down(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	if s.Scratch != "" {
		_ = os.RemoveAll(s.Scratch)
	}
	if s.keep || s.usedByOther() {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute) // even after a signal
	defer cancel()
	err := bringup.Down(ctx, s.Testbed)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: the testbed was not removed, run `make down`: %v\n", err)
	}
	return ctx, err
}

// record adds a scenario's result to the report, prints the result, and writes the report.
func (s *Session) record(scenario report.Scenario) {
	s.Report.Scenarios = append(s.Report.Scenarios, scenario)
	s.since = time.Now()
	folder := filepath.Join(Artifacts, scenario.Name)
	if _, err := os.Stat(folder); err != nil {
		folder = "" // nothing was collected after a signal
	}
	fmt.Printf("[%d/%d]", len(s.Report.Scenarios), s.Total)
	_ = report.PrintScenario(os.Stdout, scenario, folder)
	s.write()
}

// passed reports whether a scenario has passed in this run.
func (s *Session) passed(name string) bool {
	return slices.ContainsFunc(s.Report.Scenarios, func(one report.Scenario) bool { return one.Name == name && one.Result == report.Passed })
}

// Diagnose writes the artifacts of the failed scenario: what `testbed export` collects, and its
// index. The error names missing artifacts.
func (s *Session) Diagnose(ctx context.Context, scenario, reason string) error {
	if ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	folder := filepath.Join(Artifacts, scenario)
	why := fmt.Sprintf("%s failed. Its events begin about %s.\n\n%s", scenario, s.since.UTC().Format(time.RFC3339), reason)
	archive, err := export.Collect(ctx, s.Testbed, filepath.Join(folder, report.ArchiveFile), why)
	if err != nil {
		return err
	}
	return errors.Join(archive.Err(), os.WriteFile(filepath.Join(folder, report.IndexFile), []byte(archive.Index), 0o644))
}

func reportMissing(scenario string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: artifacts of %s are incomplete: %v\n", scenario, err)
	}
}

// write replaces the results on disk, unless another run uses the testbed and owns the results.
func (s *Session) write() {
	if s.usedByOther() {
		return
	}
	s.Report.Phases = s.Testbed.Recorder.Phases()
	var err error
	s.Report.Usage, err = s.sampler.Usage()
	if err := errors.Join(err, s.Report.Write(Artifacts)); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
	}
}

// Finish records the scenarios that did not run, writes the results, and returns the exit code.
func (s *Session) Finish(ctx context.Context, code int, all []Scenario) int {
	if s.release != nil {
		defer s.release()
	}
	s.skipTheRest(ctx, all)
	s.sampler.Stop()
	s.Report.Ended = time.Now()
	s.write()
	if s.Report.SetupError != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", s.Report.SetupError)
	}
	if s.keep {
		fmt.Println("the testbed is kept: `make status` shows it, `make up` resets it, `make down` removes it")
	}
	if !s.usedByOther() {
		fmt.Printf("results: %s, %s, %s\n", filepath.Join(Artifacts, report.HTMLFile),
			filepath.Join(Artifacts, report.JUnitFile), filepath.Join(Artifacts, report.SummaryFile))
	}
	_ = report.PrintTotal(os.Stdout, &s.Report)
	switch {
	case s.Report.SetupError != nil:
		return program.ExitCode(s.Report.SetupError)
	case s.skipped == "" && (code != 0 || !s.Report.Green()):
		return program.ExitFailed
	default:
		return program.ExitFine
	}
}

func (s *Session) skipTheRest(ctx context.Context, all []Scenario) {
	reason := "not matched by RUN"
	switch {
	case ctx.Err() != nil:
		reason = errInterrupted.Error()
	case s.skipped != "":
		reason = s.skipped
	case s.Report.SetupError != nil:
		reason = "the testbed did not come up: " + s.Report.SetupError.Error()
	}
	for _, scenario := range all {
		s.Report.SkipUnlessKnown(scenario.Name(), reason)
	}
}

// errInterrupted is the reason in the report for every scenario that a signal ended or prevented.
var errInterrupted = errors.New("interrupted")
