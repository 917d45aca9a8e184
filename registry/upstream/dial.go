package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	dialTimeout = time.Second
	// nextAddress is when the next address is tried beside those before it (RFC 8305, 5 and 8).
	nextAddress   = 250 * time.Millisecond
	mostAddresses = 8
)

// dial connects to the first address of a host that answers.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	one := &net.Dialer{KeepAlive: 15 * time.Second}
	return race{net.DefaultResolver.LookupHost, one.DialContext}.dial(ctx, network, address)
}

// race connects to several addresses of a host. net.Dialer races two families only: in one family a
// dead address takes the time of all.
type race struct {
	lookUp  func(ctx context.Context, host string) ([]string, error)
	connect Dial // to one address
}

func (r race) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := r.lookUp(ctx, host)
	if err != nil {
		return nil, err
	}
	found = found[:min(len(found), mostAddresses)]
	type result struct {
		conn net.Conn
		err  error
	}
	results, failed := make(chan result), []error(nil)
	for tried := 0; ; {
		var next <-chan time.Time
		if tried < len(found) {
			go func(address string) {
				conn, err := r.connect(ctx, network, address)
				select {
				case results <- result{conn, err}:
				case <-ctx.Done(): // another address was faster, or nothing in time
					if conn != nil {
						_ = conn.Close()
					}
				}
			}(net.JoinHostPort(found[tried], port))
			tried++
			next = time.After(nextAddress)
		}
		select {
		case <-next:
			continue
		case got := <-results:
			if got.err == nil {
				return got.conn, nil
			}
			failed = append(failed, got.err)
		case <-ctx.Done():
			return nil, errors.Join(append(failed, fmt.Errorf("connecting to %s: %w", address, ctx.Err()))...)
		}
		if len(failed) == len(found) {
			return nil, errors.Join(failed...)
		}
	}
}
