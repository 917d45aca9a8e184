package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
)

func TestExpired(t *testing.T) {
	ca, err := New("testbed")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Server("alpha.upstream.test", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	expired, err := ca.Expired(pair.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	// The valid certificate's key fits.
	shown, err := tls.X509KeyPair(expired, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{Roots: ca.Pool(), DNSName: "alpha.upstream.test"}
	var invalid x509.CertificateInvalidError
	if _, err := shown.Leaf.Verify(options); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("verified: %v", err)
	}
	for _, name := range []string{"alpha.upstream.test", "localhost"} {
		if err := shown.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	issuer, err := parse(ca.PEM())
	if err != nil {
		t.Fatal(err)
	}
	if err := shown.Leaf.CheckSignatureFrom(issuer); err != nil {
		t.Error(err)
	}
	if bytes.Equal(expired, pair.Certificate) {
		t.Error("the certificate was not changed")
	}
}

func TestExpiredNeedsItsOwnCertificate(t *testing.T) {
	ca, err := New("testbed")
	if err != nil {
		t.Fatal(err)
	}
	other, err := New("company")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := other.Server("alpha.upstream.test")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"another CA": pair.Certificate, "no PEM": []byte("x"), "nothing": nil} {
		if expired, err := ca.Expired(content); err == nil {
			t.Errorf("%s: %s", name, expired)
		}
	}
}
