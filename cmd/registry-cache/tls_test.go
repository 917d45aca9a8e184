package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	upstreamregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// password is not valid UTF-8. So the configuration below contains it in base64, as the
// configuration of the extension does.
const (
	username, password = "@robot", "it's \"$#&:\"\xff"
	encodedPassword    = "aXQncyAiJCMmOiL/"
)

// newPrivateUpstream starts an upstream that serves HTTPS with an untrusted certificate, requires
// credentials, and counts its requests.
func newPrivateUpstream(t *testing.T) (server *httptest.Server, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	registry := upstreamregistry.New(upstreamregistry.Logger(log.New(io.Discard, "", 0)))
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if u, p, _ := r.BasicAuth(); u != username || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		registry.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that must fail
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, asked
}

// pair writes the certificate and key of the server to files.
func pair(t *testing.T, server *httptest.Server) (certificate, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: server.Certificate().Raw},
		key:         {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

func TestServeWithPrivateCACredentialsAndTLS(t *testing.T) {
	server, asked := newPrivateUpstream(t)
	certificate, key := pair(t, server)
	transport := server.Client().Transport
	image, err := random.Image(64<<10, layers)
	if err != nil {
		t.Fatal(err)
	}
	reference := func(host string) name.Reference { return parse(t, "http://"+host, repository+":private") }
	withCredentials := remote.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.SetBasicAuth(username, password)
		return transport.RoundTrip(r)
	}))
	upstreamHost := strings.TrimPrefix(server.URL, "https://")
	if err := remote.Write(secure(t, reference(upstreamHost)), image, withCredentials); err != nil {
		t.Fatal(err)
	}

	config := filepath.Join(t.TempDir(), "config.yml")
	content := "version: 0.1\nstorage: {filesystem: {rootdirectory: '" + t.TempDir() + "'}}\n" +
		"http: {addr: 127.0.0.1:0, tls: {certificate: " + certificate + ", key: " + key + "}}\n" +
		"proxy: {remoteurl: " + server.URL + ", username: '" + username + "', password: !!binary " + encodedPassword + "}\n"
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	t.Run("an unknown CA", func(t *testing.T) {
		child := startChild(t, "serve", config)
		address := child.awaitListening(t)
		before := asked.Load()
		if _, err := remote.Image(secure(t, reference(address)), remote.WithTransport(transport)); err == nil {
			t.Error("an image was pulled from an untrusted upstream")
		}
		if now := asked.Load(); now != before {
			t.Errorf("the untrusted upstream got %d requests", now-before)
		}
		if _, _, log := child.terminate(t); !strings.Contains(log, "x509") {
			t.Errorf("the log does not say why:\n%s", log)
		}
	})
	t.Run("its CA in SSL_CERT_DIR", func(t *testing.T) {
		t.Setenv("SSL_CERT_DIR", filepath.Dir(certificate))
		child := startChild(t, "serve", config)
		address := child.awaitListening(t)
		pulled, err := remote.Image(secure(t, reference(address)), remote.WithTransport(&http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: transport.(*http.Transport).TLSClientConfig.RootCAs, MinVersion: tls.VersionTLS12},
		}))
		if err != nil {
			t.Fatal(err)
		}
		want, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pulled.Digest(); err != nil || got != want {
			t.Errorf("pulled %s, %v, want %s", got, err, want)
		}
		if _, err := pulled.RawConfigFile(); err != nil {
			t.Error(err)
		}
	})
}

// awaitListening waits until the command listens, and returns the address.
func (c *child) awaitListening(t *testing.T) string {
	t.Helper()
	_, after, _ := strings.Cut(c.expect(t, "listening on "), "listening on ")
	address, _, _ := strings.Cut(after, `"`)
	return address
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// secure returns the reference with HTTPS instead of HTTP.
func secure(t *testing.T, reference name.Reference) name.Reference {
	t.Helper()
	result, err := name.ParseReference(reference.Name())
	if err != nil {
		t.Fatal(err)
	}
	return result
}
