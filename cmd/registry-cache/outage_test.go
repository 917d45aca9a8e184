package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// A cache that is started while its upstream is out serves what it has stored (distribution#4038).
func TestServeDuringAnOutage(t *testing.T) {
	remoteRegistry := newUpstream(t)
	image := remoteRegistry.push(t, "v1")
	cache := &served{url: "http://" + freeAddress(t), debugURL: "http://" + freeAddress(t), storage: t.TempDir(), log: &syncBuffer{}}
	config := writeConfig(t, cache.config(remoteRegistry.url))

	c := startChild(t, "serve", config)
	c.expect(t, "listening on "+strings.TrimPrefix(cache.url, "http://"))
	cache.pull(t, image)
	cache.awaitStored(t, layers+1)
	if code, _, log := c.terminate(t); code != program.ExitFine {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
	remoteRegistry.close()

	c = startChild(t, "serve", config)
	c.expect(t, "starting all the same")
	c.expect(t, "listening on "+strings.TrimPrefix(cache.url, "http://"))
	descriptor, err := remote.Get(parse(t, cache.url, image))
	if err != nil {
		t.Fatal(err)
	}
	cache.pull(t, repository+"@"+descriptor.Digest.String())
	if body, status := get(t.Context(), t, cache.debugURL+"/debug/health"); status != http.StatusOK {
		t.Errorf("/debug/health answers %d: %s", status, body)
	}
}

// With credentials and an upstream that gives out tokens a cache that was started during an outage starts again afterwards:
// distribution learns where to get tokens at its start only.
func TestServeStartsAgainForTokens(t *testing.T) {
	t.Setenv("REGISTRY_PROXY_USERNAME", "robot")
	t.Setenv("REGISTRY_PROXY_PASSWORD", "secret")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://127.0.0.1/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, "serve", writeConfig(t, fmt.Sprintf(
		"version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: 127.0.0.1:0}\nproxy: {remoteurl: http://%s}\n", t.TempDir(), address)))
	c.expect(t, "starting all the same")
	c.expect(t, "listening on")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server.Listener = listener
	server.Start()
	c.expect(t, "the upstream answers again")
	for c.log.Scan() {
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
