package upstream

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

func randomImage(t *testing.T) v1.Image {
	t.Helper()
	img, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// checkPrivateCA checks that clients that trust the testbed's CA do not trust this upstream.
func checkPrivateCA(t *testing.T, _ client.APIClient, options func(host string) Options) {
	o := options(Host(testPrefix, "private"))
	everybodys := o.CA
	private, err := certificate.New("a company")
	if err != nil {
		t.Fatal(err)
	}
	o.CA = private
	registry := mustStart(t, o)
	if _, err := registry.Push(t.Context(), "web", "v1", randomImage(t)); err != nil {
		t.Fatal(err)
	}
	pull(t, o, registry, "web:v1")
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: poolOf(everybodys), ServerName: o.Host}}}
	response, err := trusting.Get("https://" + registry.localAddress(httpsPort) + "/v2/")
	if err == nil {
		_ = response.Body.Close()
		t.Fatal("trusted with the testbed's CA")
	}
	if !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Error(err)
	}
}

// checkProxy checks that the proxy reaches an upstream by its host name, with and without a tunnel,
// and logs both requests.
func checkProxy(t *testing.T, _ client.APIClient, options func(host string) Options) {
	alpha := options(testHosts(testPrefix)[0])
	mustStart(t, alpha)
	proxy, err := StartProxy(t.Context(), options(Host(testPrefix, "proxy")))
	if err != nil {
		t.Fatal(err)
	}
	again, err := StartProxy(t.Context(), options(Host(testPrefix, "proxy")))
	if err != nil || again.id != proxy.id {
		t.Errorf("a running proxy was replaced: %v", err)
	}
	if want := "http://proxy." + testPrefix + ".upstream.test:3128"; proxy.URL() != want {
		t.Errorf("URL %s, want %s", proxy.URL(), want)
	}
	through := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: proxy.localAddress(ProxyPort)}),
		TLSClientConfig: &tls.Config{RootCAs: poolOf(alpha.CA)},
	}}
	defer through.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		response, err := through.Get(scheme + "://" + alpha.Host + "/v2/")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: status %s", scheme, response.Status)
		}
	}
	records, err := proxy.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if hosts := hostsOf(records.Pulls()); hosts != "GET "+alpha.Host+", CONNECT "+alpha.Host+":443" {
		t.Errorf("the proxy's log has: %s", hosts)
	}
	if all, err := List(t.Context(), testPrefix); err != nil || len(all) != 1 {
		t.Errorf("upstreams %v, %v; the proxy is not an upstream", all, err)
	}
	if err := Remove(context.WithoutCancel(t.Context()), testPrefix); err != nil {
		t.Fatal(err)
	}
	if _, err := running(t.Context(), proxy.docker, testPrefix, proxyLabel, ""); err == nil {
		t.Error("the proxy is still there after Remove")
	}
}

func hostsOf(records accesslog.Records) string {
	seen := []string{}
	for _, r := range records {
		seen = append(seen, r.Method+" "+r.Host)
	}
	return strings.Join(seen, ", ")
}
