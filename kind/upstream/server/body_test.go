package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// secure serves the registry over HTTPS, where clients use HTTP/2.
func (b *broken) secure(t *testing.T) {
	t.Helper()
	server := httptest.NewUnstartedServer(b.Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	b.Server = server
}

func TestTruncate(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for _, after := range []string{"", "0", "5000"} {
			t.Run("after "+after+", HTTPS "+strconv.FormatBool(secure), func(t *testing.T) {
				b := startBroken(t)
				if secure {
					b.secure(t)
				}
				length := len(b.content) / 2
				options := []string{}
				if after != "" {
					length, _ = strconv.Atoi(after)
					options = []string{"after", after}
				}
				b.set(t, want(t, spec.Truncate, options...))
				got := b.ask(t, http.MethodGet, b.blob, containerd)
				if got.status != http.StatusOK || got.length != int64(len(b.content)) || !errors.Is(got.err, io.ErrUnexpectedEOF) {
					t.Errorf("status %d, length %d, %v", got.status, got.length, got.err)
				}
				if !bytes.Equal(got.body, b.content[:length]) {
					t.Errorf("%d bytes came, want the first %d", len(got.body), length)
				}
				if head := b.ask(t, http.MethodHead, b.blob, containerd); head.status != http.StatusOK || head.length != int64(len(b.content)) {
					t.Errorf("answer to HEAD: %+v", head)
				}
				if hit := b.hit(t); len(hit) != 1 || hit[0].Bytes != int64(length) || hit[0].Status != http.StatusOK {
					t.Errorf("records %+v", hit)
				}
			})
		}
	}
}

func TestSlow(t *testing.T) {
	b := startBroken(t)
	b.set(t, want(t, spec.Slow, "rate", strconv.Itoa(2*len(b.content))))
	got := b.ask(t, http.MethodGet, b.blob, containerd)
	if !bytes.Equal(got.body, b.content) || got.err != nil || got.seconds < 0.45 || got.seconds > 5 {
		t.Errorf("%d of %d bytes, %v after %.3f s, want half a second", len(got.body), len(b.content), got.err, got.seconds)
	}
	manifest := b.ask(t, http.MethodGet, "/v2/web/manifests/v1", containerd)
	if manifest.status != http.StatusOK || manifest.seconds > 0.4 {
		t.Errorf("manifest: %d after %.3f s", manifest.status, manifest.seconds)
	}
	if hit := b.hit(t); len(hit) != 1 || hit[0].Seconds < 0.45 || hit[0].Bytes != int64(len(b.content)) {
		t.Errorf("records %+v", hit)
	}
}

// TestSlowIsCleared: after the fault is cleared, the rest of the body comes at once.
func TestSlowIsCleared(t *testing.T) {
	b := startBroken(t)
	b.set(t, want(t, spec.Slow, "rate", "100", "for", "500ms"))
	if got := b.ask(t, http.MethodGet, b.blob, containerd); !bytes.Equal(got.body, b.content) || got.seconds > 20 {
		t.Errorf("%d of %d bytes, %v after %.3f s", len(got.body), len(b.content), got.err, got.seconds)
	}
}
