//go:build e2e

package rig

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// NewSessionWithoutNodes returns a session for the shoot that the gardenlet drives. Its clusters
// have no nodes, so scenarios must not use nodes, upstreams or faults.
func NewSessionWithoutNodes(driver *gardenlet.Gardenlet, seed, shoot Access) *Session {
	return &Session{Testbed: &kind.Testbed{Parts: kind.Parts{Gardenlet: driver}}, Seed: seed, Shoot: shoot, Start: time.Now()}
}

// Prove runs the scenario as a test with a subtest for each step, and prints its result. The first
// failed step ends the scenario. Unlike Features, it writes no report and collects no artifacts.
func (s *Session) Prove(ctx context.Context, t *testing.T, one Scenario) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(ctx, scenarioTimeout, fmt.Errorf("scenario %s took longer than %s", one.name, scenarioTimeout))
	t.Cleanup(cancel)
	p := &Run{T: t, Scenario: t, Session: s, Result: &report.Scenario{Name: one.name, Result: report.Passed, Started: time.Now()}}
	for _, step := range one.steps {
		passed := t.Run(step.Name, func(t *testing.T) {
			p.T, p.step = t, step.Name
			p.Check(context.Cause(ctx))
			step.Do(ctx, p)
		})
		if !passed {
			p.Result.Result = report.Failed
			p.setReason("failed without a message")
			break
		}
	}
	p.Result.Seconds = time.Since(p.Result.Started).Seconds()
	if err := report.PrintScenario(os.Stdout, *p.Result, ""); err != nil {
		t.Error(err)
	}
}
