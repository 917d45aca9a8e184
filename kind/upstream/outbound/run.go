package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// drain bounds how long a stop waits for running answers.
const drain = 3 * time.Second

// Run serves on the address until ctx ends, then stops gracefully, or until the port cannot be served.
func Run(ctx context.Context, address string, records io.Writer) error {
	server := &http.Server{Addr: address, Handler: NewHandler(ctx, records), ReadHeaderTimeout: time.Minute}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", address, err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		return server.Shutdown(bound)
	})
	return group.Wait()
}
