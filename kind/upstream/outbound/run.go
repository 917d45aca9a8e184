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

// drainTimeout bounds how long a shutdown waits for running requests.
const drainTimeout = 3 * time.Second

// Run serves on the address until ctx ends or the port fails, and then shuts down gracefully.
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
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		return server.Shutdown(bound)
	})
	return group.Wait()
}
