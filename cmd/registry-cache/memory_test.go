package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/prometheus/procfs"
)

var clients = flag.Int("clients", 100, "clients of TestMemory")

// TestMemory limits the peak of the cache's resident memory while many clients pull an image and
// one in ten reads nothing. The others must not wait for these, which are cut only after a minute.
func TestMemory(t *testing.T) {
	const limit = 128 << 20
	u := newUpstream(t)
	image, err := random.Image(8<<20, layers)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parse(t, u.url, repository+":v1"), image); err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	cache := &servedCache{url: "http://" + freeAddress(t), debugURL: "http://" + freeAddress(t), storage: t.TempDir(), log: &syncBuffer{}}
	c := cache.start(t, writeConfig(t, cache.config(u.url)))
	cache.pull(t, repository+":v1")
	cache.awaitStored(t, layers+1)
	var paths []string
	for _, layer := range manifest.Layers {
		paths = append(paths, "/v2/"+repository+"/blobs/"+layer.Digest.String())
	}
	frozen := *clients / 10
	alone := cache.readAll(t, *clients-frozen, paths)
	for n := range frozen {
		cache.freeze(t, paths[n%len(paths)])
	}
	beside := cache.readAll(t, *clients-frozen, paths)
	process, err := procfs.NewProc(c.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	status, err := process.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clients, %d of them frozen: %d MiB, %s; without frozen ones %s", *clients, frozen, status.VmHWM>>20, beside, alone)
	if status.VmHWM > limit {
		t.Errorf("the resident memory of the cache reached %d MiB, want at most %d", status.VmHWM>>20, limit>>20)
	}
	if beside > 3*alone+5*time.Second {
		t.Errorf("clients took %s beside frozen ones, %s without them", beside, alone)
	}
}

// readAll lets each client read all paths, one after the other, and returns how long they took.
func (s *servedCache) readAll(t *testing.T, clients int, paths []string) time.Duration {
	t.Helper()
	start := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for _, path := range paths {
				if err := read(t, s.url+path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

func read(t *testing.T, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	n, err := io.Copy(io.Discard, response.Body)
	if err == nil && (n != response.ContentLength || response.StatusCode != http.StatusOK) {
		err = fmt.Errorf("%s: status %d, %d bytes", url, response.StatusCode, n)
	}
	return err
}

// freeze requests a path and reads nothing. The connection is closed at the end of the test.
func (s *servedCache) freeze(t *testing.T, path string) {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, "GET "+path+" HTTP/1.1\r\nHost: cache\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}
