package bringup

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind"
)

// part is a part of Up or Down.
type part = func(context.Context, *kind.Testbed) error

// step returns a part that runs as a step of the testbed's Recorder.
func step(name string, run part) part {
	return func(ctx context.Context, t *kind.Testbed) error {
		return t.Recorder.Step(ctx, name, func(ctx context.Context) error { return run(ctx, t) })
	}
}

// inOrder runs the parts on a target, one after another, until one fails.
func inOrder[T any](ctx context.Context, target T, parts ...func(context.Context, T) error) error {
	for _, part := range parts {
		if err := part(ctx, target); err != nil {
			return err
		}
	}
	return nil
}
