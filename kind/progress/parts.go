package progress

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// inOrder runs the parts one after another, until one fails.
func InOrder(ctx context.Context, parts ...func(context.Context) error) error {
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// atOnce runs the parts concurrently; the first failure cancels the others.
func AtOnce(ctx context.Context, parts ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}
