package nodeconfig_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/log"
	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func init() {
	log.L.Logger.SetOutput(io.Discard) // containerd logs files that it cannot parse
}

// serveImage returns a handler that answers with an image manifest whose content is name.
func serveImage(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(name))
	}
}

// certsDir creates a certs.d with one hosts.toml, and returns its path.
func certsDir(t *testing.T, upstream, content string) string {
	t.Helper()
	n := &node{certs: t.TempDir()}
	n.write(t, upstream, content)
	return n.certs
}

// hostsOf reads a hosts.toml with containerd's own code. If hostsOf returns an error, containerd's
// pulls from this upstream fail.
func hostsOf(t *testing.T, upstream, content string) ([]docker.RegistryHost, error) {
	t.Helper()
	directory := config.HostDirFromRoot(certsDir(t, upstream, content))
	return config.ConfigureHosts(t.Context(), config.HostOptions{HostDir: directory})(upstream)
}

// pull resolves an image with containerd's own resolver and a hosts.toml, and returns the argument
// of the serveImage that answered.
func pull(t *testing.T, upstream, content string) (string, error) {
	t.Helper()
	directory := config.HostDirFromRoot(certsDir(t, upstream, content))
	resolver := docker.NewResolver(docker.ResolverOptions{
		Hosts: config.ConfigureHosts(t.Context(), config.HostOptions{HostDir: directory}),
	})
	_, descriptor, err := resolver.Resolve(t.Context(), upstream+"/app:latest")
	if err != nil {
		return "", err
	}
	for _, name := range []string{byCache, byUpstream} {
		if descriptor.Digest == digest.FromString(name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("unknown image %s", descriptor.Digest)
}

const byCache, byUpstream = "cache", "upstream"

// tlsPair returns a cache and an upstream, each with its own CA.
func tlsPair(t *testing.T) nodeconfig.Registry {
	t.Helper()
	cacheCA, upstreamCA := newTestCA(t, "cache"), newTestCA(t, "upstream")
	return nodeconfig.Registry{
		Upstream: "alpha.test", Endpoint: cacheCA.server(t, serveImage(byCache)).URL, UpstreamURL: upstreamCA.server(t, serveImage(byUpstream)).URL,
		EndpointCA: cacheCA.PEM, UpstreamCA: upstreamCA.PEM,
	}
}

func TestContainerdReadsHostsTOML(t *testing.T) {
	const down = "https://127.0.0.1:1"
	other := newTestCA(t, "other")
	plainCache, plainUpstream := httptest.NewServer(serveImage(byCache)), httptest.NewServer(serveImage(byUpstream))
	t.Cleanup(plainCache.Close)
	t.Cleanup(plainUpstream.Close)
	tls := tlsPair(t)
	for name, test := range map[string]struct {
		change func(r *nodeconfig.Registry)
		want   string
	}{
		"both with HTTPS":                       {func(*nodeconfig.Registry) {}, byCache},
		"the cache is down":                     {func(r *nodeconfig.Registry) { r.Endpoint = down }, byUpstream},
		"no cache yet":                          {func(r *nodeconfig.Registry) { r.Endpoint = "" }, byUpstream},
		"the cache is not trusted":              {func(r *nodeconfig.Registry) { r.EndpointCA = other.PEM }, byUpstream},
		"two CAs of the cache":                  {func(r *nodeconfig.Registry) { r.EndpointCA = append(other.PEM, r.EndpointCA...) }, byCache},
		"a cache without HTTPS":                 {func(r *nodeconfig.Registry) { r.Endpoint = plainCache.URL }, byCache},
		"both without HTTPS":                    {func(r *nodeconfig.Registry) { r.Endpoint, r.UpstreamURL = plainCache.URL, plainUpstream.URL }, byCache},
		"HTTPS expected, the cache has none":    {func(r *nodeconfig.Registry) { r.Endpoint = strings.Replace(plainCache.URL, "http", "https", 1) }, byUpstream},
		"no HTTPS expected, the cache has some": {func(r *nodeconfig.Registry) { r.Endpoint = strings.Replace(r.Endpoint, "https", "http", 1) }, byUpstream},
		"an upstream without HTTPS": {func(r *nodeconfig.Registry) {
			r.Endpoint, r.UpstreamURL, r.UpstreamCA = down, plainUpstream.URL, nil
		}, byUpstream},
	} {
		t.Run(name, func(t *testing.T) {
			registry := tls
			test.change(&registry)
			content := hostsTOML(registry)
			if got, err := pull(t, "alpha.test", content); got != test.want || err != nil {
				t.Errorf("served by %q, %v, want %q, with\n%s", got, err, test.want, content)
			}
		})
	}
}

func TestContainerdAsksTheCacheFirst(t *testing.T) {
	registry := tlsPair(t)
	hosts, err := hostsOf(t, "alpha.test", hostsTOML(registry))
	if err != nil || len(hosts) != 2 {
		t.Fatalf("hosts %v, %v", hosts, err)
	}
	for i, want := range []string{registry.Endpoint, registry.UpstreamURL} {
		if got := hosts[i].Scheme + "://" + hosts[i].Host; got != want {
			t.Errorf("host %d is %s, want %s", i, got, want)
		}
	}
	if got, want := hosts[0].Capabilities, docker.HostCapabilityPull|docker.HostCapabilityResolve; got != want {
		t.Errorf("capabilities %v, want %v", got, want)
	}
}

// damagedPair returns what tlsPair returns, but its upstream is an HTTP server on this machine,
// which containerd finds even without a hosts.toml.
func damagedPair(t *testing.T) nodeconfig.Registry {
	t.Helper()
	registry := tlsPair(t)
	upstream := httptest.NewServer(serveImage(byUpstream))
	t.Cleanup(upstream.Close)
	registry.UpstreamURL = upstream.URL
	registry.Upstream = strings.TrimPrefix(upstream.URL, "http://")
	return registry
}

func TestContainerdNeverFailsForATruncatedFile(t *testing.T) {
	registry := damagedPair(t)
	content := hostsTOML(registry)
	served := map[string]int{}
	for length := range content {
		by, err := pull(t, registry.Upstream, content[:length])
		if err != nil {
			t.Fatalf("cut off after %d bytes, pulls fail: %v\n%s", length, err, content[:length])
		}
		served[by]++
	}
	if served[byUpstream] == 0 || served[byCache] == 0 { // byCache: a file that lacks only its last line break is valid
		t.Errorf("served by %v: the test does not cut as intended", served)
	}
	for name, damaged := range map[string]string{
		"zeros":          strings.Repeat("\x00", len(content)),
		"zeros at end":   content[:len(content)/2] + strings.Repeat("\x00", len(content)/2),
		"garbage":        "garbage\n",
		"another format": "<html>404</html>",
		"twice":          content + content,
	} {
		if by, err := pull(t, registry.Upstream, damaged); by != byUpstream || err != nil {
			t.Errorf("%s: served by %q, %v", name, by, err)
		}
	}
}

// TestContainerdFailsForFewDamages checks that one wrong byte can make every pull fail only in two
// places: in the only certificate, and in the file name of "ca". The script restores such a file.
func TestContainerdFailsForFewDamages(t *testing.T) {
	registry := damagedPair(t)
	content := hostsTOML(registry)
	begin := strings.Index(content, "\n-----BEGIN")
	end := strings.LastIndex(content, "-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----\n")
	name := strings.LastIndex(content, nodeconfig.HostsFile)
	failures := 0
	for i := range content {
		damaged := []byte(content)
		damaged[i] ^= 1 << (i % 7)
		_, err := hostsOf(t, registry.Upstream, string(damaged))
		expected := begin <= i && i < end || name <= i && i < name+len(nodeconfig.HostsFile)
		if err != nil && !expected {
			t.Errorf("with byte %d changed to %q pulls fail: %v", i, damaged[i], err)
		}
		if err != nil {
			failures++
		}
	}
	t.Logf("%d of %d changes of one bit fail every pull until the file is restored", failures, len(content))
	if failures == 0 {
		t.Error("no change fails a pull: the test does not damage as intended")
	}
}
