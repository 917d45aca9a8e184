//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

const (
	// downTimeout bounds the clean-up, which must not be cut short by the signal that caused it.
	downTimeout = 3 * time.Minute
	// diagnoseTimeout bounds the collection of artifacts after a failure.
	diagnoseTimeout = 2 * time.Minute
)

// session is one run: the testbed, the results so far, and what the scenarios share.
type session struct {
	testbed *kind.Testbed
	keep    bool
	memory  *report.MemorySampler

	mu     sync.Mutex
	report report.Report

	seed, shoot access
	// pause is the program that the pulled images run.
	pause   image.Built
	scratch string
}

func newSession(keep bool) (*session, error) {
	testbed, err := kind.New(kind.Options{NodeImage: os.Getenv("NODE_IMAGE"), Out: os.Stdout})
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(artifacts); err != nil {
		return nil, fmt.Errorf("remove the results of the last run: %w", err)
	}
	return &session{testbed: testbed, keep: keep, memory: report.SampleMemory()}, nil
}

// up brings the testbed up. The results are written before it starts, so that they exist whatever happens.
func (s *session) up(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	s.write()
	err := s.testbed.Up(ctx)
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		s.report.SetupError = err
		s.write()
		s.diagnose(ctx, "setup")
	}
	return ctx, err
}

// prepare makes what the scenarios need: clients, and the program of the images that they pull.
func (s *session) prepare(ctx context.Context) (err error) {
	if err := s.connect(); err != nil {
		return err
	}
	if s.scratch, err = os.MkdirTemp("", "registry-cache-e2e-"); err != nil {
		return fmt.Errorf("make a folder for the test images: %w", err)
	}
	built, err := image.Build(ctx, s.scratch, image.Pause())
	if err != nil {
		return fmt.Errorf("build the program of the test images: %w", err)
	}
	s.pause = built[0]
	s.report.Versions = versions(ctx, s.shoot)
	return nil
}

// down removes the testbed unless it is to be kept. e2e-framework hides an error of it; the failed phase is in the report.
func (s *session) down(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	if s.scratch != "" {
		_ = os.RemoveAll(s.scratch)
	}
	// One that another process works on is not ours to remove.
	if s.keep || errors.Is(s.report.SetupError, kind.ErrBusy) {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	err := s.testbed.Down(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: the testbed was not removed, run `make down`: %v\n", err)
	}
	return ctx, err
}

// record takes over the result of a scenario, prints its line and writes the files anew.
func (s *session) record(scenario report.Scenario) {
	s.mu.Lock()
	s.report.Scenarios = append(s.report.Scenarios, scenario)
	s.mu.Unlock()
	_ = report.PrintScenario(os.Stdout, scenario, filepath.Join(artifacts, scenario.Name))
	s.write()
}

// diagnose collects artifacts into the folder of the scenario. When it fails, that is said, and no more.
func (s *session) diagnose(ctx context.Context, scenario string) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	if err := s.testbed.Diagnose(ctx, filepath.Join(artifacts, scenario)); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: artifacts of %s are incomplete: %v\n", scenario, err)
	}
}

// write replaces the results on disk by what is known now.
func (s *session) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Phases = s.testbed.Recorder().Phases()
	peak, err := s.memory.Peak()
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
	}
	s.report.PeakMemoryBytes = peak
	if err := s.report.Write(artifacts); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
	}
}

// finish records the scenarios that did not run, writes the results, prints the closing line and returns the exit code.
func (s *session) finish(ctx context.Context, code int) int {
	s.skipTheRest(ctx)
	s.memory.Stop()
	s.write()
	if s.report.SetupError != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", s.report.SetupError)
	}
	if s.keep {
		fmt.Printf("the testbed is kept; look at it with `make status`, remove it with `make down`\n")
	}
	fmt.Printf("results: %s, %s\n", filepath.Join(artifacts, report.JUnitFile), filepath.Join(artifacts, report.SummaryFile))
	_ = report.PrintTotal(os.Stdout, &s.report)
	switch {
	case s.report.SetupError != nil:
		return program.ExitCode(s.report.SetupError)
	case code != 0 || !s.report.Green():
		return program.ExitFailed
	default:
		return program.ExitFine
	}
}

func (s *session) skipTheRest(ctx context.Context) {
	reason := "not matched by RUN"
	switch {
	case ctx.Err() != nil:
		reason = errInterrupted.Error()
	case s.report.SetupError != nil:
		reason = "the testbed did not come up: " + s.report.SetupError.Error()
	}
	known := map[string]bool{}
	for _, scenario := range s.report.Scenarios {
		known[scenario.Name] = true
	}
	for _, scenario := range scenarios() { //nolint:contextcheck // they are only named here
		if !known[scenario.Name()] {
			s.report.Scenarios = append(s.report.Scenarios,
				report.Scenario{Name: scenario.Name(), Result: report.Skipped, Reason: reason})
		}
	}
}
