//go:build e2e

package rig

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/report"
)

// Run is a scenario that runs: a testing.T whose failures also go to the report, and the collected
// evidence.
type Run struct {
	*testing.T
	Session *Session
	Result  *report.Scenario
	// step is the name of the current step.
	step string
	// Scenario is the T of the whole scenario; the embedded T is that of the current step.
	Scenario *testing.T
	// Diagnosed is true if the artifacts were collected already. Missing then says which could not be.
	Diagnosed bool
	Missing   error
}

// Fatalf fails the scenario and ends it.
func (p *Run) Fatalf(format string, args ...any) {
	p.Helper()
	p.Errorf(format, args...)
	p.FailNow()
}

// Errorf fails the scenario; the first failure is the reason in the report.
func (p *Run) Errorf(format string, args ...any) {
	p.Helper()
	p.T.Errorf(format, args...)
	p.setReason(p.step + ": " + fmt.Sprintf(format, args...))
}

// setReason sets the reason unless it is set.
func (p *Run) setReason(reason string) {
	if p.Result.Reason == "" {
		p.Result.Reason = reason
	}
}

// Check fails the scenario and ends it if err is not nil.
func (p *Run) Check(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%v", err)
	}
}

// Evidence adds a fact to the result.
func (p *Run) Evidence(format string, args ...any) {
	p.Result.Evidence = append(p.Result.Evidence, fmt.Sprintf(format, args...))
}

// Afterwards runs undo when the scenario has ended and its artifacts are collected. A signal does
// not cancel its context.
func (p *Run) Afterwards(ctx context.Context, undo func(ctx context.Context) error) {
	p.Scenario.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		if err := undo(ctx); err != nil {
			p.Scenario.Errorf("clean-up: %v", err)
			p.setReason(fmt.Sprintf("clean-up: %v", err))
		}
	})
}

func (p *Run) end(ctx context.Context, took time.Duration) {
	p.Result.Seconds = took.Seconds()
	switch {
	case p.Scenario.Failed():
		p.Session.Disturbed.Store(true)
		p.Result.Result = report.Failed
		if ctx.Err() != nil {
			p.Result.Reason = errInterrupted.Error() + ": " + p.Result.Reason
		}
		if p.Result.Reason == "" {
			p.Result.Reason = "failed without a message"
		}
	default:
		p.Result.Result = report.Passed
	}
	p.Session.record(*p.Result)
	reportMissing(p.Result.Name, p.Missing)
}
