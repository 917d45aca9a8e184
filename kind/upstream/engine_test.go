package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// testPrefix is the prefix of the testbed of TestInContainers. The testbed has its own network.
const testPrefix = "upstream-test"

// TestInContainers needs a Docker Engine.
func TestInContainers(t *testing.T) {
	docker, options := engine(t)
	for name, test := range map[string]func(*testing.T, client.APIClient, func(host string) Options){
		"push, pull, log":        pushPullLog,
		"keep what runs":         keepWhatRuns,
		"stopped":                stopped,
		"failure leaves nothing": failureLeavesNothing,
		"private CA":             checkPrivateCA,
		"proxy":                  checkProxy,
		"broken on purpose":      brokenOnPurpose,
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if err := Remove(context.WithoutCancel(t.Context()), testPrefix); err != nil {
					t.Error(err)
				}
			})
			test(t, docker, options)
		})
	}
}

// engine returns a client, and a function that returns the options of an upstream in a new network.
// It skips the test if no Docker Engine answers, and removes everything after the test.
func engine(t *testing.T) (client.APIClient, func(host string) Options) {
	t.Helper()
	docker, err := connect()
	if err == nil {
		_, err = docker.Ping(t.Context(), client.PingOptions{})
	}
	if err != nil {
		t.Skipf("no Docker Engine: %v", err)
	}
	built, err := image.Build(t.Context(), t.TempDir(), Binary())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := certificate.Ensure(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// The containers have fixed names, so another run of this test on the same machine must end first.
	unlock, err := file.Lock(t.Context(), filepath.Join(file.LockDirectory(), testPrefix+".lock"), 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
	cleanUp := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := Remove(ctx, testPrefix); err != nil {
			t.Error(err)
		}
		// Remove by ID: killed runs may have left several networks of this name, which makes the name
		// ambiguous.
		left, err := docker.NetworkList(ctx, client.NetworkListOptions{Filters: make(client.Filters).Add("label", Label+"="+testPrefix)})
		if err != nil {
			t.Error(err)
		}
		for _, network := range left.Items {
			if _, err := docker.NetworkRemove(ctx, network.ID, client.NetworkRemoveOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	cleanUp()
	t.Cleanup(cleanUp)
	labels := map[string]string{Label: testPrefix}
	if _, err := docker.NetworkCreate(t.Context(), testPrefix, client.NetworkCreateOptions{Labels: labels}); err != nil {
		t.Fatal(err)
	}
	return docker, func(host string) Options {
		return Options{Prefix: testPrefix, Host: host, Network: testPrefix, CA: ca, Image: built[0]}
	}
}

func mustStart(t *testing.T, o Options) *Registry {
	t.Helper()
	began := time.Now()
	registry, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("start %s: %.2fs", o.Host, time.Since(began).Seconds())
	return registry
}

// poolOf returns a pool that contains only the CA.
func poolOf(ca *certificate.CA) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM())
	return pool
}

// pull reads a whole image over HTTPS and trusts only the CA.
func pull(t *testing.T, o Options, registry *Registry, image string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(registry.localAddress(httpsPort) + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: poolOf(o.CA), ServerName: o.Host}}
	img, err := remote.Image(tag, remote.WithTransport(transport))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			t.Fatal(err)
		}
		_ = content.Close()
	}
	return img
}

func pushPullLog(t *testing.T, _ client.APIClient, options func(host string) Options) {
	hosts := testHosts(testPrefix)[:2]
	began := time.Now()
	started, err := StartAll(t.Context(), options(hosts[0]), options(hosts[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("start two: %.2fs", time.Since(began).Seconds())
	alpha, beta := started[0], started[1]
	if alpha.Host() != hosts[0] || beta.Host() != hosts[1] {
		t.Fatalf("started %s and %s", alpha.Host(), beta.Host())
	}

	pause, err := image.Build(t.Context(), t.TempDir(), image.Pause())
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.Random(pause[0], 2, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := alpha.Push(t.Context(), "shop/web", "v1", img)
	if err != nil {
		t.Fatal(err)
	}
	got := pull(t, options(hosts[0]), alpha, "shop/web:v1")
	if pulled, _ := got.Digest(); pulled != digest {
		t.Errorf("pulled %s, pushed %s", pulled, digest)
	}
	if err := validate.Image(got, validate.Fast); err != nil {
		t.Error(err)
	}

	began = time.Now()
	records, err := alpha.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("log: %.2fs, %d records", time.Since(began).Seconds(), len(records))
	secure := records.Repository("shop/web").Blobs().Gets().Filter(func(r accesslog.Record) bool { return r.Scheme == "https" })
	if len(secure) != 4 || secure.Bytes() < 2<<20 {
		t.Errorf("HTTPS blob GETs %+v, want config, program and 2 layers with the layers' bytes", secure)
	}
	if others, err := beta.Log(t.Context()); err != nil || len(others.Repository("shop/web")) != 0 {
		t.Errorf("log of the other upstream: %v, %v", others, err)
	}
}

func keepWhatRuns(t *testing.T, docker client.APIClient, options func(host string) Options) {
	o := options(testHosts(testPrefix)[0])
	first := mustStart(t, o)
	if second := mustStart(t, o); second.id != first.id {
		t.Error("a running upstream was replaced")
	}
	if _, err := docker.ContainerKill(t.Context(), first.id, client.ContainerKillOptions{}); err != nil {
		t.Fatal(err)
	}
	third := mustStart(t, o)
	if third.id == first.id {
		t.Error("a stopped upstream was kept")
	}
	other, err := certificate.Ensure(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.CA = other
	if fourth := mustStart(t, o); fourth.id == third.id {
		t.Error("an upstream with a certificate of another CA was kept")
	}
	if all, err := List(t.Context(), testPrefix); err != nil || len(all) != 1 {
		t.Errorf("upstreams %v, %v", all, err)
	}
}

func stopped(t *testing.T, docker client.APIClient, options func(host string) Options) {
	host := testHosts(testPrefix)[0]
	registry := mustStart(t, options(host))
	if _, err := docker.ContainerStop(t.Context(), registry.id, client.ContainerStopOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := running(t.Context(), docker, testPrefix, hostLabel, host); !errors.Is(err, ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
	all, err := List(t.Context(), testPrefix)
	if err != nil || len(all) != 1 || all[0].Running() || !strings.Contains(all[0].Status(), "Exited (0)") {
		t.Errorf("List: %v, %v; want one that ended gracefully", all[0].Status(), err)
	}
	var stdout, stderr bytes.Buffer
	if err := all[0].Output(t.Context(), &stdout, &stderr); err != nil || !strings.Contains(stdout.String(), `"path":"/v2/"`) {
		t.Errorf("output %q, %q, %v", stdout.String(), stderr.String(), err)
	}
	for range 2 {
		if err := Remove(t.Context(), testPrefix); err != nil {
			t.Error(err)
		}
	}
}

func failureLeavesNothing(t *testing.T, _ client.APIClient, options func(host string) Options) {
	o := options(testHosts(testPrefix)[0])
	o.Network = "no-such-network"
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "network no-such-network") {
		t.Errorf("error %v", err)
	}
	if all, err := List(t.Context(), testPrefix); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// brokenOnPurpose sets faults in a container, reads them as another process would, and clears them.
func brokenOnPurpose(t *testing.T, _ client.APIClient, options func(host string) Options) {
	o := options(testHosts(testPrefix)[0])
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
	listed, err := List(t.Context(), testPrefix)
	if err != nil || len(listed) != 1 {
		t.Fatalf("%d upstreams, %v", len(listed), err)
	}
	found := listed[0]
	if all, err := found.Faults(t.Context()); err != nil || len(all) != 1 || all[0].ID != "f1" || len(found.Addresses()) == 0 {
		t.Errorf("faults %v, addresses %v, %v", all, found.Addresses(), err)
	}
	node := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: poolOf(o.CA), ServerName: o.Host}}}
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

// expectStatus sends a request as containerd would, and checks the status of the answer.
func expectStatus(t *testing.T, node *http.Client, registry *Registry, want int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+registry.localAddress(httpsPort)+"/v2/", nil)
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
