package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
)

func TestExpired(t *testing.T) {
	authority, err := New("testbed")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("alpha.upstream.test", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	over, err := authority.Expired(pair.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	// The key of the good one fits.
	shown, err := tls.X509KeyPair(over, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{Roots: authority.Pool(), DNSName: "alpha.upstream.test"}
	var invalid x509.CertificateInvalidError
	if _, err := shown.Leaf.Verify(options); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("verified: %v", err)
	}
	for _, name := range []string{"alpha.upstream.test", "localhost"} {
		if err := shown.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	issuer, err := parse(authority.PEM())
	if err != nil {
		t.Fatal(err)
	}
	if err := shown.Leaf.CheckSignatureFrom(issuer); err != nil {
		t.Error(err)
	}
	if bytes.Equal(over, pair.Certificate) {
		t.Error("it is the same one")
	}
}

func TestExpiredOfAnother(t *testing.T) {
	authority, err := New("testbed")
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
	for name, content := range map[string][]byte{"another authority": pair.Certificate, "no PEM": []byte("x"), "nothing": nil} {
		if over, err := authority.Expired(content); err == nil {
			t.Errorf("%s: %s", name, over)
		}
	}
}
