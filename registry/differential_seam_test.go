package registry

import (
	"context"
	"net"
	"net/http"
)

// diffOpen opens a cache for the differential test. It connects to the upstream and its token
// server only with dial.
func diffOpen(
	ctx context.Context, config *Config, dial func(ctx context.Context, network, address string) (net.Conn, error),
) (http.Handler, func(), error) {
	cache, err := open(ctx, config, dial, nil)
	if err != nil {
		return nil, nil, err
	}
	return cache, func() { cache.close() }, nil
}
