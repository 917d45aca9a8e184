package nodeconfig_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// discard is the log of servers whose clients fail on purpose.
var discard = log.New(io.Discard, "", 0)

// cache is a fake cache: an HTTP server whose handler a test can replace.
type cache struct {
	nodeconfig.Registry
	handler     atomic.Pointer[http.HandlerFunc]
	certificate atomic.Pointer[tls.Certificate] // of an HTTPS server
	requests    atomic.Int32
	server      *httptest.Server
}

// newCache returns a cache for the upstream. With a CA, it speaks HTTPS.
func newCache(t *testing.T, upstream string, ca *testCA, handler http.HandlerFunc) *cache {
	t.Helper()
	c := &cache{Registry: nodeconfig.Registry{Upstream: upstream, UpstreamURL: "https://" + upstream}}
	c.handler.Store(&handler)
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		if r.URL.Path != "/v2/" || r.Method != http.MethodGet {
			t.Errorf("the script asks for %s %s", r.Method, r.URL.Path)
		}
		(*c.handler.Load())(w, r)
	}))
	c.server.Config.ErrorLog = discard
	if ca == nil {
		c.server.Start()
	} else {
		c.EndpointCA = ca.PEM
		c.certificate.Store(ca.certificateFor(t, valid))
		c.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{*c.certificate.Load()}}, nil
		}}
		c.server.StartTLS()
	}
	c.Endpoint = c.server.URL
	t.Cleanup(c.server.Close)
	t.Cleanup(c.server.CloseClientConnections) // runs first: a leftover client must not block the test
	return c
}

// become replaces the handler.
func (c *cache) become(handler http.HandlerFunc) { c.handler.Store(&handler) }

func ready(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// hang answers only after the client has canceled the request.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func answer(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}
