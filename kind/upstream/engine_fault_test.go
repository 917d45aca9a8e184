package upstream

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// brokenOnPurpose sets faults in a container, reads them as another process would, and clears them.
func brokenOnPurpose(t *testing.T, _ client.APIClient, options func(host string) Options) {
	o := options(Hosts(testPrefix)[0])
	registry := mustStart(t, o)
	if all, err := registry.Faults(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("faults of a new upstream: %v, %v", all, err)
	}
	f, err := spec.New("upstream/alpha", "status", map[string][]string{"status": {"503"}, "for": {"5m"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.SetFaults(t.Context(), f.Begin("f1", time.Now())); err != nil {
		t.Fatal(err)
	}
	found, err := Find(t.Context(), testPrefix, o.Host)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := found.Faults(t.Context()); err != nil || len(all) != 1 || all[0].ID != "f1" || len(found.Addresses()) == 0 {
		t.Errorf("faults %v, addresses %v, %v", all, found.Addresses(), err)
	}
	node := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: o.CA.Pool(), ServerName: o.Host}}}
	defer node.CloseIdleConnections()
	expectStatus(t, node, registry, http.StatusServiceUnavailable)
	pause, err := image.Build(t.Context(), t.TempDir(), image.Pause())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Push(t.Context(), "web", "v1", pause[0].Image); err != nil {
		t.Errorf("a push is hit: %v", err)
	}
	if err := registry.SetFaults(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, node, registry, http.StatusOK)
}

// expectStatus sends a request as containerd would.
func expectStatus(t *testing.T, node *http.Client, registry *Registry, want int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+registry.LocalHTTPS()+"/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "containerd/v2.3.4")
	response, err := node.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != want {
		t.Errorf("status %d, want %d", response.StatusCode, want)
	}
}
