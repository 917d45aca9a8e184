//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/e2e/report"
)

// scenarioTimeout bounds one scenario; the waits inside have shorter bounds and messages of their own.
const scenarioTimeout = 6 * time.Minute

// proof is one scenario while it runs: a testing.T whose failures go to the report too, and the evidence collected.
type proof struct {
	*testing.T
	result *report.Scenario
	// scenario is the T of the whole scenario, T the one of the current step.
	scenario *testing.T
	// diagnosed says that artifacts were collected already, missing what of them could not be had.
	diagnosed bool
	missing   error
}

// step is one claim of a scenario; its name says what it proves.
type step struct {
	name string
	do   func(ctx context.Context, p *proof)
}

// scenario makes a feature of steps. A step that calls Fatalf ends the scenario. On a failure artifacts are collected
// before anything is cleaned up.
func scenario(name string, steps ...step) features.Feature {
	p := &proof{result: &report.Scenario{Name: name}}
	feature := features.New(name)
	// e2e-framework hands the context of one feature on to the next: the teardown puts back the one of the setup.
	var outer context.Context
	var cancel context.CancelFunc
	feature.Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		if ctx.Err() != nil {
			t.Skip(errInterrupted)
		}
		p.result.Started = time.Now()
		t.Cleanup(func() { p.end(outer, time.Since(p.result.Started)) })
		outer, p.scenario = ctx, t
		ctx, cancel = context.WithTimeoutCause(ctx, scenarioTimeout,
			fmt.Errorf("scenario %s took longer than %s", name, scenarioTimeout))
		return ctx
	})
	for _, step := range steps {
		feature.Assess(step.name, func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			p.T = t
			start := time.Now()
			t.Cleanup(func() {
				p.result.Steps = append(p.result.Steps, report.Step{Name: step.name, Seconds: time.Since(start).Seconds(), Failed: t.Failed()})
			})
			if ctx.Err() == nil {
				step.do(ctx, p)
			} else {
				p.Fatalf("%v", context.Cause(ctx))
			}
			return ctx
		})
	}
	feature.Teardown(func(_ context.Context, t *testing.T, _ *envconf.Config) context.Context {
		cancel()
		if t.Failed() && !p.diagnosed {
			p.missing = suite.diagnose(outer, name, p.result.Reason)
		}
		return outer
	})
	return feature.Feature()
}

// Fatalf fails the scenario and ends it.
func (p *proof) Fatalf(format string, args ...any) {
	p.Helper()
	p.Errorf(format, args...)
	p.FailNow()
}

// Errorf fails the scenario; the first failure is the reason in the report.
func (p *proof) Errorf(format string, args ...any) {
	p.Helper()
	p.T.Errorf(format, args...)
	p.setReason(strings.TrimPrefix(p.T.Name(), p.scenario.Name()+"/") + ": " + fmt.Sprintf(format, args...))
}

// setReason keeps the first one.
func (p *proof) setReason(reason string) {
	if p.result.Reason == "" {
		p.result.Reason = reason
	}
}

// Check fails the scenario and ends it if err is not nil.
func (p *proof) Check(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%v", err)
	}
}

// Evidence adds a fact to the result.
func (p *proof) Evidence(format string, args ...any) {
	p.result.Evidence = append(p.result.Evidence, fmt.Sprintf(format, args...))
}

// Afterwards runs undo when the scenario has ended and its artifacts are collected, with a context that a signal does
// not end.
func (p *proof) Afterwards(ctx context.Context, undo func(ctx context.Context) error) {
	p.scenario.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		if err := undo(ctx); err != nil {
			p.scenario.Errorf("clean-up: %v", err)
			p.setReason(fmt.Sprintf("clean-up: %v", err))
		}
	})
}

// Await polls until done returns true or an error, and fails the scenario after the timeout with the text of what was
// awaited and the state that done last described.
func (p *proof) Await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) {
	p.Helper()
	p.Check(await(ctx, what, timeout, done))
}

func await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) error {
	return awaitEvery(ctx, pollInterval, what, timeout, done)
}

func awaitEvery(
	ctx context.Context, interval time.Duration, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error),
) error {
	last := "not looked at"
	err := wait.For(func(ctx context.Context) (ok bool, err error) {
		ok, state, err := done(ctx)
		if ctx.Err() == nil {
			last = state
		}
		return ok, err
	}, wait.WithContext(ctx), wait.WithImmediate(), wait.WithInterval(interval), wait.WithTimeout(timeout))
	if err != nil {
		return fmt.Errorf("waited up to %s until %s; last seen: %s: %w", timeout, what, last, err)
	}
	return nil
}

const (
	// pollInterval is short: everything polled is on this machine.
	pollInterval = 200 * time.Millisecond
	// nodeInterval is longer: a command on a node takes this machine more than a request does.
	nodeInterval = 500 * time.Millisecond
)

func (p *proof) end(ctx context.Context, took time.Duration) {
	p.result.Seconds = took.Seconds()
	switch {
	case p.scenario.Failed():
		suite.disturbed.Store(true)
		p.result.Result = report.Failed
		if ctx.Err() != nil {
			p.result.Reason = errInterrupted.Error() + ": " + p.result.Reason
		}
		if p.result.Reason == "" {
			p.result.Reason = "failed without a message"
		}
	default:
		p.result.Result = report.Passed
	}
	suite.record(*p.result)
	reportMissing(p.result.Name, p.missing)
}
