package kind

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// StoppedError names containers of a testbed that are there and do not run, as after a restart of the engine. It counts as a matter
// of the environment (internal/program).
type StoppedError struct{ Containers []string }

// EnvironmentError marks the error for internal/program.
func (*StoppedError) EnvironmentError() {}

// Error says what helps.
func (e *StoppedError) Error() string {
	return "not running: " + strings.Join(e.Containers, ", ") + "; `testbed up` repairs the testbed"
}

// AttachRunning is Attach for who needs all of the testbed: a node or an upstream that does not run is a *StoppedError, instead of
// what would be told later by whoever finds it so.
func (t *Testbed) AttachRunning(ctx context.Context) error {
	if err := t.Attach(ctx); err != nil {
		return err
	}
	var stopped []string
	for _, name := range []string{t.SeedName(), t.ShootName()} {
		found, err := cluster.StoppedNodes(ctx, name)
		if err != nil {
			return err
		}
		stopped = append(stopped, found...)
	}
	for _, registry := range t.Upstreams.All() {
		if !registry.Running() {
			stopped = append(stopped, fmt.Sprintf("%s (%s)", registry.Container(), registry.Status()))
		}
	}
	if len(stopped) > 0 {
		return &StoppedError{stopped}
	}
	return nil
}
