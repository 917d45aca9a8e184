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

// reply is the result of one request. Durations count from the start of the request.
type reply struct {
	First, Last time.Duration // until the first and last byte, or until the error
	Bytes       int64
	Err         error // why the answer is not the whole blob
}

// download starts the clients at once, each on its own connection. Each downloads the blobs one
// after another. download returns all answers, and the time from the first request to the last
// byte.
func download(ctx context.Context, clients int, url string, blobs []blob) (all []reply, took time.Duration) {
	start := make(chan struct{})
	var mu sync.Mutex
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			buffer := make([]byte, readBuffer)
			<-start
			for _, blob := range blobs {
				answer := get(ctx, transport, url+blob.Path, blob.Size, buffer)
				mu.Lock()
				all = append(all, answer)
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	close(start)
	running.Wait()
	return all, time.Since(began)
}

func get(ctx context.Context, transport *http.Transport, url string, size int64, buffer []byte) (a reply) {
	start := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return reply{Err: err}
	}
	request.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json, */*")
	response, err := transport.RoundTrip(request)
	if err != nil {
		took := time.Since(start)
		return reply{First: took, Last: took, Err: cmp.Or(context.Cause(ctx), err)}
	}
	defer func() { _ = response.Body.Close() }()
	for err == nil {
		var n int
		n, err = response.Body.Read(buffer)
		if a.Last = time.Since(start); a.First == 0 {
			a.First = a.Last
		}
		a.Bytes += int64(n)
	}
	switch {
	case response.StatusCode != http.StatusOK:
		a.Err = fmt.Errorf("status %d", response.StatusCode)
	case !errors.Is(err, io.EOF):
		a.Err = fmt.Errorf("cut after %d of %d bytes: %w", a.Bytes, size, err)
	case a.Bytes != size:
		a.Err = fmt.Errorf("got %d bytes, want %d", a.Bytes, size)
	}
	return a
}
