//go:build e2e

package rig

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/e2e/report"
)

// scenarioTimeout bounds one scenario. The waits in it have shorter timeouts with their own
// messages.
const scenarioTimeout = 6 * time.Minute

// Step is one claim of a scenario; its name says what it proves.
type Step struct {
	Name string
	Do   func(ctx context.Context, p *Run)
}

// Scenario is a behavior, proven in steps.
type Scenario struct {
	name  string
	steps []Step
}

// Name is the name that RUN matches.
func (s Scenario) Name() string { return s.name }

// New returns a scenario with these steps.
func New(name string, steps ...Step) Scenario { return Scenario{name, steps} }

// Features returns the scenarios as features of e2e-framework.
func (s *Session) Features(all ...Scenario) []features.Feature {
	list := make([]features.Feature, 0, len(all))
	for _, one := range all {
		list = append(list, s.feature(one))
	}
	return list
}

// feature converts a scenario. A step that calls Fatalf ends it. After a failure artifacts are
// collected before the clean-up.
func (s *Session) feature(one Scenario) features.Feature {
	name := one.name
	p := &Run{Session: s, Result: &report.Scenario{Name: name}}
	feature := features.New(name)
	// e2e-framework passes the context of one feature on to the next: the teardown restores that of
	// the setup.
	var outer context.Context
	var cancel context.CancelFunc
	feature.Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		if ctx.Err() != nil {
			t.Skip(errInterrupted)
		}
		p.Result.Started = time.Now()
		t.Cleanup(func() { p.end(outer, time.Since(p.Result.Started)) })
		outer, p.Scenario = ctx, t
		ctx, cancel = context.WithTimeoutCause(ctx, scenarioTimeout,
			fmt.Errorf("scenario %s took longer than %s", name, scenarioTimeout))
		return ctx
	})
	for _, step := range one.steps {
		feature.Assess(step.Name, func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			p.T, p.step = t, step.Name
			start := time.Now()
			t.Cleanup(func() {
				p.Result.Steps = append(p.Result.Steps, report.Step{
					Name: step.Name, Seconds: time.Since(start).Seconds(), Failed: t.Failed(),
				})
			})
			if ctx.Err() == nil {
				step.Do(ctx, p)
			} else {
				p.Fatalf("%v", context.Cause(ctx))
			}
			return ctx
		})
	}
	feature.Teardown(func(_ context.Context, t *testing.T, _ *envconf.Config) context.Context {
		cancel()
		if t.Failed() && !p.Diagnosed {
			p.Missing = s.Diagnose(outer, name, p.Result.Reason)
		}
		return outer
	})
	return feature.Feature()
}

// Prove returns a step; its name is the claim that do proves.
func Prove(name string, do func(ctx context.Context, p *Run)) Step { return Step{name, do} }

// Await polls until done returns true or an error, and fails the scenario after the timeout with
// the text of what was awaited and the state that done last described.
func (p *Run) Await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) {
	p.Helper()
	p.Check(Await(ctx, what, timeout, done))
}

// Await polls like Run.Await and returns the failure as an error.
func Await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) error {
	return AwaitEvery(ctx, pollInterval, what, timeout, done)
}

// AwaitEvery is Await with another interval.
func AwaitEvery(
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
	// pollInterval is short, because all API servers are on this machine.
	pollInterval = 200 * time.Millisecond
	// NodeInterval is longer, because a command on a node costs more than a request.
	NodeInterval = 500 * time.Millisecond
)
