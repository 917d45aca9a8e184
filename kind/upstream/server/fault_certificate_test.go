package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

const expiringHost = "alpha.upstream.test"

// TestTLSConfig does TLS handshakes with a server over a real connection.
func TestTLSConfig(t *testing.T) {
	ca, err := certificate.New("testbed")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Server(expiringHost)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := ca.Expired(pair.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	faults, key := filepath.Join(dir, "faults.json"), filepath.Join(dir, "tls.key")
	if err := os.WriteFile(key, pair.Key, 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	settings := tlsConfig(faults, key)
	settings.Certificates = []tls.Certificate{own} // as http.Server.ListenAndServeTLS does
	listener, err := tls.Listen("tcp", "127.0.0.1:0", settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = connection.(*tls.Conn).Handshake(); _ = connection.Close() }()
		}
	}()
	dial := func() error {
		client := &tls.Config{RootCAs: ca.Pool(), ServerName: expiringHost}
		connection, err := tls.Dial("tcp", listener.Addr().String(), client)
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
	if err := dial(); err != nil {
		t.Errorf("without a fault: %v", err)
	}
	f := want(t, spec.ExpiredTLS, "for", "1h")
	f.Certificate = string(expired)
	store(t, faults, f)
	var invalid x509.CertificateInvalidError
	if err := dial(); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("with it: %v", err)
	}
	store(t, faults, f.Begin("f1", time.Now().Add(-2*time.Hour)))
	if err := dial(); err != nil {
		t.Errorf("after its end: %v", err)
	}
}
