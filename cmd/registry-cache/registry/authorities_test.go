package registry

import (
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func TestPublicAuthoritiesAreTrusted(t *testing.T) {
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	t.Setenv("SSL_CERT_FILE", "/dev/null")
	transport := &http.Transport{}
	if err := trustAuthorities(transport); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		_, err = certificate.Verify(x509.VerifyOptions{Roots: transport.TLSClientConfig.RootCAs, CurrentTime: certificate.NotBefore.Add(time.Hour)})
		if err != nil {
			t.Errorf("%s: %v", certificate.Subject, err)
		}
		checked++
	}
	if checked < 50 {
		t.Errorf("only %d public authorities are built in", checked)
	}
}
