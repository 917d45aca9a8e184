package progress

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// InOrder runs the parts one after another until one fails.
func InOrder(ctx context.Context, parts ...func(context.Context) error) error {
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AtOnce runs the parts concurrently. The first error cancels the others and is returned.
func AtOnce(ctx context.Context, parts ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}
