package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// records is an access log that is read after all requests have ended.
type records struct {
	mu sync.Mutex
	bytes.Buffer
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Buffer.Write(line)
}

// start starts a proxy. It returns the proxy's address and a function that reads the proxy's log.
func start(t *testing.T) (address *url.URL, read func() accesslog.Records) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := &records{}
	server := httptest.NewServer(newProxy(ctx, log))
	t.Cleanup(server.Close)
	t.Cleanup(cancel)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return address, func() accesslog.Records {
		response, err := http.Get(server.URL + accesslog.SettlePath + "?mark")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		server.Close() // waits until the record of that request is written
		all, err := accesslog.NewReader(&log.Buffer).Until("mark")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// client returns a client that sends all requests through the proxy, and trusts the certificate.
func client(t *testing.T, proxy *url.URL, trusted *x509.Certificate) *http.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(proxy)
	if trusted != nil {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AddCert(trusted)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	response, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// echo answers with the host, the path and the credentials of the request.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode([]string{r.Host, r.URL.Path, r.Header.Get("Proxy-Authorization"), r.Header.Get("Authorization")})
})

func TestForward(t *testing.T) {
	target := httptest.NewServer(echo)
	defer target.Close()
	host := strings.TrimPrefix(target.URL, "http://")
	address, log := start(t)
	address.User = url.UserPassword("user", "secret")
	status, body := get(t, client(t, address, nil), "http://name:hidden@"+host+"/v2/web/manifests/v1")
	if want := `["` + host + `","/v2/web/manifests/v1","","Basic bmFtZTpoaWRkZW4="]`; status != http.StatusOK || strings.TrimSpace(body) != want {
		t.Errorf("status %d, %s, want %s", status, body, want)
	}
	all := log()
	if len(all) != 1 {
		t.Fatalf("records %+v", all)
	}
	if r := all[0]; r.Host != host || r.Repository != "web" || r.Reference != "v1" || r.Bytes == 0 || r.Asker != accesslog.AskerCache {
		t.Errorf("record %+v", r)
	}
	line, _ := json.Marshal(all)
	for _, secret := range []string{"secret", "hidden", "bmFtZ"} {
		if strings.Contains(string(line), secret) {
			t.Errorf("%s is in the log: %s", secret, line)
		}
	}
}

func TestTunnel(t *testing.T) {
	target := httptest.NewTLSServer(echo)
	defer target.Close()
	host := strings.TrimPrefix(target.URL, "https://")
	address, log := start(t)
	through := client(t, address, target.Certificate())
	for range 2 { // through the same tunnel
		if status, body := get(t, through, target.URL+"/v2/"); status != http.StatusOK || !strings.Contains(body, `"/v2/"`) {
			t.Errorf("status %d, %s", status, body)
		}
	}
	// The tunnel must have a record although it is still open.
	all := log()
	if len(all) != 1 || all[0].Method != http.MethodConnect || all[0].Host != host || all[0].Status != http.StatusOK {
		t.Errorf("records %+v", all)
	}
}

func TestTunnelEnds(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(newProxy(ctx, io.Discard))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	// The client sends its first bytes without waiting for the answer.
	if _, err := io.WriteString(conn, "CONNECT "+target.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\nearly"); err != nil {
		t.Fatal(err)
	}
	reached, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer reached.Close()
	_ = reached.SetDeadline(time.Now().Add(time.Minute))
	early := make([]byte, len("early"))
	if _, err := io.ReadFull(reached, early); err != nil || string(early) != "early" {
		t.Errorf("the target read %q, %v", early, err)
	}
	cancel()
	if _, err := reached.Read(early); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end of the proxy the target read: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	closed := httptest.NewServer(echo)
	closed.Close()
	address, log := start(t)
	if status, _ := get(t, client(t, address, nil), closed.URL); status != http.StatusBadGateway {
		t.Errorf("a host that does not answer: status %d", status)
	}
	if status, body := get(t, http.DefaultClient, address.String()+"/v2/"); status != http.StatusBadRequest || !strings.Contains(body, "this is a proxy") {
		t.Errorf("a request that is not for a proxy: status %d, %s", status, body)
	}
	response, err := client(t, address, nil).Get(strings.Replace(closed.URL, "http:", "https:", 1))
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "Bad Gateway") {
		t.Errorf("a tunnel to a host that does not answer: %v", err)
	}
	if all := log(); len(all) != 3 || all[2].Status != http.StatusBadGateway {
		t.Errorf("records %+v", all)
	}
}
