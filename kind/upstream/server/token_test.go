package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// TestTokenFault checks that a client without a token is refused, and that a real client gets a
// token and the image.
func TestTokenFault(t *testing.T) {
	b := startBroken(t)
	b.set(t, want(t, spec.Token))
	if got := b.ask(t, http.MethodGet, b.blob, containerd); got.status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got.status)
	}
	ref, err := name.ParseReference(strings.TrimPrefix(b.URL, "http://")+"/web:v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Get(ref, remote.WithContext(t.Context()), remote.WithUserAgent(containerd)); err != nil {
		t.Errorf("with a token: %v", err)
	}
}

// TestTokenFaultOrder checks that a later fault on all requests does not affect the token server,
// and that an earlier one does.
func TestTokenFaultOrder(t *testing.T) {
	b := startBroken(t)
	token, down := want(t, spec.Token), want(t, spec.Status, "status", "503")
	b.set(t, token, down)
	if got := b.ask(t, http.MethodGet, tokenPath, containerd); got.status != http.StatusOK {
		t.Errorf("token server with a later fault: %d", got.status)
	}
	b.set(t, down, token)
	if got := b.ask(t, http.MethodGet, tokenPath, containerd); got.status != http.StatusServiceUnavailable {
		t.Errorf("token server with an earlier fault: %d", got.status)
	}
}
