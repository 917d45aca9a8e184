package registry

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

const (
	firstPatience = 2 * time.Second        // before the breaker is open
	patience      = 300 * time.Millisecond // while it is open
)

// TestOutage: in any outage, the cache serves stored content by digest and by tag, and refuses
// other requests at once, so that containerd asks the upstream.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, fault := range away {
		for _, tokens := range []bool{false, true} {
			// A refusal is not an outage. Without tokens, the token server's answer does not matter.
			refused := name == "401" || name == "403" || name == "token server 401"
			answers := !tokens && strings.HasPrefix(name, "token")
			answered := refused || answers
			t.Run(fmt.Sprintf("%s, tokens %t", name, tokens), func(t *testing.T) {
				Virtually(t, func(t *testing.T) {
					u := newTestUpstream(t, tokens)
					u.credential = map[bool]string{true: "secret"}[tokens]
					image, other := u.push(t, "v1", 2, 100<<10), u.push(t, "v2", 1, 100<<10)
					volume := t.TempDir()
					first := newTestServer(t, u, volume)
					pullAll(t, first, image)
					first.await(t, 3)
					first.stop()
					first.age(t)
					cache := newTestServer(t, u, volume) // as after a restart
					undo := u.breakWith(t, fault)
					for round := range 4 {
						bound := firstPatience
						if round > 1 {
							bound = patience
						}
						cache.servesStored(t, image, bound, answered)
						if !answered {
							cache.refuses(t, other, bound)
						}
					}
					undo()
					cache.recovers(t, other)
				})
			})
		}
	}
}

func (s *testServer) servesStored(t *testing.T, image testImage, bound time.Duration, answered bool) {
	t.Helper()
	if a := getFrom(t, http.MethodGet, s.manifest(image.manifest.String())); a.status != http.StatusOK || a.took > patience {
		t.Errorf("a stored manifest: %d after %s", a.status, a.took)
	}
	for blob, content := range image.content {
		if a := getFrom(t, http.MethodGet, s.blob(blob.String())); a.status != http.StatusOK || a.took > patience || !bytes.Equal(a.body, content) {
			t.Errorf("a stored blob: %d after %s, %d bytes", a.status, a.took, len(a.body))
		}
	}
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		a := getFrom(t, method, s.manifest(image.tag))
		if answered { // the upstream answers, so its answer about a tag counts
			continue
		}
		if a.status != http.StatusOK || a.took > bound || a.header.Get("Warning") == "" {
			t.Errorf("%s of a stored tag: %d after %s, at most %s wanted, Warning %q", method, a.status, a.took, bound, a.header.Get("Warning"))
		}
		bound = firstPatience
	}
}

func (s *testServer) refuses(t *testing.T, image testImage, bound time.Duration) {
	t.Helper()
	honest := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	urls := []string{s.manifest(image.tag), s.manifest(image.manifest.String())}
	for blob := range image.content {
		urls = append(urls, s.blob(blob.String()))
	}
	for _, url := range urls {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			a := getFrom(t, method, url)
			if !slices.Contains(honest, a.status) || a.took > max(bound, patience) || a.header.Get("Retry-After") == "" {
				t.Errorf("%s %s: %d after %s, at most %s wanted, Retry-After %q", method, url, a.status, a.took, bound, a.header.Get("Retry-After"))
			}
		}
	}
}

// age makes the confirmations of tags ten minutes old.
func (s *testServer) age(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.volume, "docker/registry/v2/repositories/*/*/_manifests/tags/*/current/link"))
	then := time.Now().Add(-10 * time.Minute)
	for _, file := range files {
		err = errors.Join(err, os.Chtimes(file, then, then))
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("%d tags: %v", len(files), err)
	}
}

// recovers waits until the cache serves a new image.
func (s *testServer) recovers(t *testing.T, image testImage) {
	t.Helper()
	await(t, "the cache asks the upstream again", func() bool {
		return getFrom(t, http.MethodGet, s.manifest(image.tag)).status == http.StatusOK
	})
}

// await waits until the given number of blobs is stored.
func (s *testServer) await(t *testing.T, blobs int) {
	t.Helper()
	await(t, fmt.Sprintf("%d blobs are stored", blobs), func() bool { return s.stored(t) == blobs })
}

// pullAll pulls an image as a node does: the tag, the manifest and the layers.
func pullAll(t *testing.T, s *testServer, image testImage) {
	t.Helper()
	for _, url := range []string{s.manifest(image.tag), s.manifest(image.manifest.String())} {
		if a := getFrom(t, http.MethodGet, url); a.status != http.StatusOK || digest.FromBytes(a.body) != image.manifest {
			t.Errorf("%s: %d", url, a.status)
		}
	}
	for blob, content := range image.content {
		if a := getFrom(t, http.MethodGet, s.blob(blob.String())); a.status != http.StatusOK || !bytes.Equal(a.body, content) {
			t.Errorf("blob %s: %d, %d bytes, %v", blob, a.status, len(a.body), a.failure)
		}
	}
}
