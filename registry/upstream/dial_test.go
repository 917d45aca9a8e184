package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// conn is a connection that records Close.
type conn struct {
	net.Conn
	closed bool
}

// Close implements net.Conn.
func (c *conn) Close() error { c.closed = true; return nil }

var errRefused = errors.New("connection refused")

// TestDial checks how long it takes to connect to a host with dead addresses, and that only the
// returned connection stays open.
func TestDial(t *testing.T) {
	const dead, refuses = -1, -2
	alive := func(after time.Duration) time.Duration { return after }
	for name, test := range map[string]struct {
		addresses []time.Duration // the delay of each answer
		to        int             // the index of the connected address
		took      time.Duration
		err       error
	}{
		"one":                      {[]time.Duration{alive(10 * time.Millisecond)}, 0, 10 * time.Millisecond, nil},
		"the first is dead":        {[]time.Duration{dead, alive(0)}, 1, 250 * time.Millisecond, nil},
		"the first refuses":        {[]time.Duration{refuses, alive(0)}, 1, 0, nil},
		"the first is slow":        {[]time.Duration{alive(300 * time.Millisecond), alive(time.Second / 2)}, 0, 300 * time.Millisecond, nil},
		"three are dead":           {[]time.Duration{dead, dead, dead, alive(0)}, 3, 750 * time.Millisecond, nil},
		"four are dead":            {[]time.Duration{dead, dead, dead, dead, alive(time.Millisecond)}, -1, time.Second, context.DeadlineExceeded},
		"all refuse":               {[]time.Duration{refuses, refuses, refuses}, -1, 0, errRefused},
		"one refuses, one is dead": {[]time.Duration{refuses, dead}, -1, time.Second, context.DeadlineExceeded},
		"the ninth would answer":   {[]time.Duration{refuses, refuses, refuses, refuses, refuses, refuses, refuses, refuses, alive(0)}, -1, 0, errRefused},
		"both at the same time":    {[]time.Duration{alive(260 * time.Millisecond), alive(10 * time.Millisecond)}, -2, 260 * time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := map[string]*conn{}
				r := race{
					lookUp: func(_ context.Context, host string) (found []string, err error) {
						if host != "registry.example" {
							t.Errorf("looked up %q", host)
						}
						for n := range test.addresses {
							made[fmt.Sprintf("10.0.0.%d:443", n)] = &conn{}
							found = append(found, fmt.Sprintf("10.0.0.%d", n))
						}
						return found, nil
					},
					connect: func(ctx context.Context, _, address string) (net.Conn, error) {
						var n int
						_, _ = fmt.Sscanf(address, "10.0.0.%d:443", &n)
						switch after := test.addresses[n]; after {
						case refuses:
							return nil, errRefused
						case dead:
							<-ctx.Done()
							return nil, ctx.Err()
						default:
							<-time.After(after) // even if ctx is done: then the connection is closed
							return made[address], nil
						}
					},
				}
				start := time.Now()
				got, err := r.dial(t.Context(), "tcp", "registry.example:443")
				if took := time.Since(start); took != test.took || !errors.Is(err, test.err) {
					t.Errorf("%v after %s, want %v after %s", err, took, test.err, test.took)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				for n, after := range test.addresses {
					one := made[fmt.Sprintf("10.0.0.%d:443", n)]
					if isUsed := got == net.Conn(one); isUsed && (one.closed || test.to != -2 && test.to != n) {
						t.Errorf("the connection is to address %d, closed: %t", n, one.closed)
					} else if tried := time.Duration(n)*nextAddress <= test.took && n < 8; !isUsed && after >= 0 && tried && !one.closed {
						t.Errorf("the connection to address %d stays open", n)
					}
				}
				if (got != nil) != (err == nil) {
					t.Errorf("connection %v, error %v", got, err)
				}
			})
		})
	}
}
