package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
)

func TestServe(t *testing.T) {
	ca, err := certificate.New("test")
	if err != nil {
		t.Fatal(err)
	}
	good, err := ca.Server("localhost")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		scheme string
		pair   []byte
		want   string
	}{
		"HTTP":  {"http", nil, "503"},
		"HTTPS": {"https", slices.Concat(good.Certificate, good.Key), "503"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- answer(ctx, listener, http.StatusServiceUnavailable, test.pair) }()
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(ca.PEM())
			client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, test.scheme+"://"+listener.Addr().String()+"/v2/a/blobs/b", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if response, err := client.Do(request); err != nil {
				got = err.Error()
			} else {
				got = response.Status
				_ = response.Body.Close()
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
