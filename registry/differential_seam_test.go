package registry

import (
	"context"
	"net"
	"net/http"
)

// diffOpen opens the cache as the differential test needs it: a handler and its end. Every
// connection to the upstream and its token server is made by dial.
func diffOpen(
	ctx context.Context, config *Config, dial func(ctx context.Context, network, address string) (net.Conn, error),
) (http.Handler, func(), error) {
	cache, err := open(ctx, config, dial, nil)
	if err != nil {
		return nil, nil, err
	}
	return cache, func() { cache.close() }, nil
}
