//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/cachetest/fieldbugs"
	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// Run is a running scenario: a testing.T whose failures and evidence go to the report.
type Run struct {
	*testing.T
	Session *Session
	Result  *report.Scenario
	step    string // the name of the current step
	// Scenario is the T of the whole scenario; the embedded T is that of the current step.
	Scenario *testing.T
	missing  error // the artifacts that could not be collected
	left     *leftovers
}

// leftovers are the undo functions that a scenario, with LEAVE, leaves to the next in its group.
type leftovers []func(ctx context.Context) error

// undo calls and then forgets the functions, the last one first. An error does not stop it.
func (l *leftovers) undo(ctx context.Context) (failed error) {
	for _, undo := range slices.Backward(*l) {
		failed = errors.Join(failed, undo(ctx))
	}
	*l = nil
	return failed
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

// must returns a function that returns the value, or fails the scenario if err is not nil.
func must[T any](value T, err error) func(p *Run) T {
	return func(p *Run) T {
		p.Helper()
		p.Check(err)
		return value
	}
}

// Evidence adds a fact to the result.
func (p *Run) Evidence(format string, args ...any) {
	p.Result.Evidence = append(p.Result.Evidence, fmt.Sprintf(format, args...))
}

// Afterwards runs undo after the scenario, once the artifacts of a failure are collected. A signal
// does not cancel the context of undo. With LEAVE, undo runs only at the beginning of the next
// scenario of the group, if there is one.
func (p *Run) Afterwards(ctx context.Context, undo func(ctx context.Context) error) {
	if p.Session.leave {
		*p.left = append(*p.left, undo)
		return
	}
	p.Scenario.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		if err := undo(ctx); err != nil {
			p.Scenario.Errorf("clean-up: %v", err)
			p.setReason(fmt.Sprintf("clean-up: %v", err))
		}
	})
}

// undoTimeout bounds an undo. On a busy machine a lost node takes minutes to join again.
const undoTimeout = 7 * time.Minute

// Cuts reports whether the session leaves out steps of the scenario.
func (s *Session) Cuts(one Scenario) bool {
	return !s.Full && slices.ContainsFunc(one.steps, func(step Step) bool { return step.full })
}

func (p *Run) end(ctx context.Context, one Scenario, took time.Duration) {
	p.Result.Seconds = took.Seconds()
	p.Result.Result = report.Passed
	switch {
	case p.Scenario.Failed():
		p.Session.Disturbed.Store(true)
		p.Result.Result = report.Failed
		if ctx.Err() != nil {
			p.Result.Reason = errInterrupted.Error() + ": " + p.Result.Reason
		}
		p.setReason("failed without a message")
	case !p.Session.Cuts(one):
		p.Result.Evidence = append(p.Result.Evidence, fieldbugs.Held(one.name, p.Session.passed)...)
	}
	p.Session.record(*p.Result)
	reportMissing(p.Result.Name, p.missing)
}

// scenarioTimeout bounds a scenario, unless it has another timeout. The waits in it have shorter
// timeouts and clearer messages.
const scenarioTimeout = 6 * time.Minute

// Step proves one claim of a scenario. The name of the step is the claim.
type Step struct {
	Name string
	Do   func(ctx context.Context, p *Run)
	full bool
}

// InFullLane returns the step, restricted to the full lane. Later steps must not depend on it.
func (s Step) InFullLane() Step {
	s.full = true
	return s
}

// Scenario is a behavior, proven in steps.
type Scenario struct {
	name    string
	steps   []Step
	timeout time.Duration
}

// Within returns the scenario with another timeout.
func (s Scenario) Within(timeout time.Duration) Scenario {
	s.timeout = timeout
	return s
}

// Name returns the name that RUN matches.
func (s Scenario) Name() string { return s.name }

// New returns a scenario with these steps.
func New(name string, steps ...Step) Scenario {
	return Scenario{name: name, steps: steps, timeout: scenarioTimeout}
}

// Features returns a group of scenarios, which run one after another, as features of e2e-framework.
func (s *Session) Features(group ...Scenario) []features.Feature {
	var list []features.Feature
	left := &leftovers{}
	for _, one := range group {
		list = append(list, s.feature(one, left))
	}
	return list
}

// feature converts a scenario to a feature. After a failure the feature collects artifacts.
func (s *Session) feature(one Scenario, left *leftovers) features.Feature {
	name := one.name
	p := &Run{Session: s, Result: &report.Scenario{Name: name}, left: left}
	feature := features.New(name)
	// e2e-framework passes a context from each feature to the next one. So the teardown returns outer,
	// the context that this feature received.
	var outer context.Context
	var cancel context.CancelFunc
	feature.Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		if ctx.Err() != nil {
			t.Skip(errInterrupted)
		}
		p.Result.Started = time.Now()
		t.Cleanup(func() { p.end(outer, one, time.Since(p.Result.Started)) })
		outer, p.Scenario = ctx, t
		ctx, cancel = context.WithTimeoutCause(ctx, one.timeout,
			fmt.Errorf("scenario %s took longer than %s", name, one.timeout))
		if err := left.undo(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: undo what the previous scenario left: %v\n", err)
			s.Disturbed.Store(true)
		}
		return ctx
	})
	for _, step := range one.steps {
		if step.full && !s.Full {
			continue
		}
		feature.Assess(step.Name, func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			p.T, p.step = t, step.Name
			start := time.Now()
			t.Cleanup(func() {
				p.Result.Steps = append(p.Result.Steps, report.Step{
					Name: step.Name, Seconds: time.Since(start).Seconds(), Failed: t.Failed(),
				})
			})
			p.Check(context.Cause(ctx))
			step.Do(ctx, p)
			return ctx
		})
	}
	feature.Teardown(func(_ context.Context, t *testing.T, _ *envconf.Config) context.Context {
		cancel()
		if t.Failed() {
			p.missing = s.Diagnose(outer, name, p.Result.Reason)
		}
		return outer
	})
	return feature.Feature()
}

// Prove returns a step: a claim, and the function that proves it.
func Prove(name string, do func(ctx context.Context, p *Run)) Step { return Step{Name: name, Do: do} }

// Await polls until done returns true. The scenario fails after an error or the timeout. The
// message names the awaited event and the last state that done returned.
func (p *Run) Await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) {
	p.Helper()
	p.Check(Await(ctx, what, timeout, done))
}

// Await polls like Run.Await and returns the failure as an error.
func Await(ctx context.Context, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) error {
	return AwaitEvery(ctx, pollInterval, what, timeout, done)
}

// AwaitEvery is like Await, but polls with the given interval.
func AwaitEvery(
	ctx context.Context, interval time.Duration, what string, timeout time.Duration, done func(ctx context.Context) (ok bool, state string, err error),
) error {
	last := "nothing"
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
	// pollInterval is the pause between two checks. It is short, because all API servers are local.
	pollInterval = 200 * time.Millisecond
	// NodeInterval is the pause between two checks on nodes. A command costs more than a request.
	NodeInterval = 500 * time.Millisecond
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
