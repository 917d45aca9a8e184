package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const readBuffer = 128 << 10

// target is something to download.
type target struct {
	URL  string
	Size int64 // other sizes are failures
}

// reply is the result of one request. Durations count from the start of the request.
type reply struct {
	Status      int // 0: no header arrived
	First, Last time.Duration
	Bytes       int64
	Err         error // the answer is not the whole target
}

// download lets so many clients download the targets, one after another, and returns all answers
// and the time from the first request to the last byte. All start at once, each on a connection of
// its own.
func download(ctx context.Context, clients int, targets []target) ([]reply, time.Duration) {
	answers := make([][]reply, clients)
	start := make(chan struct{})
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			c := newClient()
			defer c.transport.CloseIdleConnections()
			<-start
			for _, target := range targets {
				answers[i] = append(answers[i], c.get(ctx, target))
			}
		})
	}
	began := time.Now()
	close(start)
	running.Wait()
	took := time.Since(began)
	var all []reply
	for _, own := range answers {
		all = append(all, own...)
	}
	return all, took
}

type client struct {
	transport *http.Transport
	buffer    []byte
}

func newClient() *client {
	return &client{transport: &http.Transport{DisableCompression: true}, buffer: make([]byte, readBuffer)}
}

func (c *client) get(ctx context.Context, target target) (a reply) {
	start := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL, http.NoBody)
	if err != nil {
		return reply{Err: err}
	}
	request.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json, */*")
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		took := time.Since(start)
		return reply{First: took, Last: took, Err: cmp.Or(context.Cause(ctx), err)}
	}
	defer func() { _ = response.Body.Close() }()
	a.Status = response.StatusCode
	for {
		n, err := response.Body.Read(c.buffer)
		if a.Last = time.Since(start); a.First == 0 {
			a.First = a.Last
		}
		a.Bytes += int64(n)
		if err != nil {
			a.Err = verdict(a, target, err)
			return a
		}
	}
}

func verdict(a reply, target target, err error) error {
	switch {
	case a.Status != http.StatusOK:
		return fmt.Errorf("status %d", a.Status)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("cut after %d of %d bytes: %w", a.Bytes, target.Size, err)
	case a.Bytes != target.Size:
		return fmt.Errorf("got %d bytes, want %d", a.Bytes, target.Size)
	default:
		return nil
	}
}
