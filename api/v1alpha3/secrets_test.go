package v1alpha3_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func secret(immutable *bool, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s"}, Immutable: immutable, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// checkSecretErrors expects one error at the path that contains want, or no error if want is empty.
func checkSecretErrors(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	if want == "" && len(errs) == 0 {
		return
	}
	if want == "" || len(errs) != 1 || errs[0].Field != "caches[3].ref" || !strings.Contains(errs[0].Error(), "the Secret garden-dev/s "+want) {
		t.Errorf("got %v, want %q at caches[3].ref", errs, want)
	}
}

var secretPath = field.NewPath("caches").Index(3).Child("ref")

func TestValidateCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		immutable *bool
		data      map[string]string
		want      string
	}{
		"good":             {new(true), map[string]string{"username": "@robot", "password": "a'b#c$d\"\\\n: é\x00\xff"}, ""},
		"mutable":          {nil, map[string]string{"username": "u", "password": "p"}, "must be immutable"},
		"not immutable":    {new(false), map[string]string{"username": "u", "password": "p"}, "must be immutable"},
		"no username":      {new(true), map[string]string{"password": "p"}, `lacks the key "username"`},
		"no password":      {new(true), map[string]string{"username": "u"}, `lacks the key "password"`},
		"empty username":   {new(true), map[string]string{"username": "", "password": "p"}, `has an empty value for the key "username"`},
		"empty password":   {new(true), map[string]string{"username": "u", "password": ""}, `has an empty value for the key "password"`},
		"blank password":   {new(true), map[string]string{"username": "u", "password": " \n"}, ""},
		"one key too many": {new(true), map[string]string{"username": "u", "password": "p", "email": "e"}, `must have no keys other than username, password, but has "email"`},
	} {
		t.Run(name, func(t *testing.T) {
			checkSecretErrors(t, v1alpha3.ValidateCredentials(secret(test.immutable, test.data), secretPath), test.want)
		})
	}
}

func TestCredentialErrorsContainNoValues(t *testing.T) {
	errs := v1alpha3.ValidateCredentials(secret(nil, map[string]string{"username": "hunter", "pass": "hunter"}), secretPath)
	if len(errs) != 3 || strings.Contains(errs.ToAggregate().Error(), "hunter") {
		t.Errorf("got %v", errs)
	}
}

// certificate returns a certificate in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestValidateCABundle(t *testing.T) {
	one, two := certificate(t), certificate(t)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")}))
	headers := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x"), Headers: map[string]string{"a": "b"}}))
	for name, test := range map[string]struct {
		immutable *bool
		data      map[string]string
		want      string
	}{
		"one":              {new(true), map[string]string{"bundle.crt": one}, ""},
		"two":              {new(true), map[string]string{"bundle.crt": one + two}, ""},
		"text between":     {new(true), map[string]string{"bundle.crt": "# my CA\n" + one + "\n'''\r\n" + two}, ""},
		"carriage returns": {new(true), map[string]string{"bundle.crt": strings.ReplaceAll(one, "\n", "\r\n")}, ""},
		"mutable":          {nil, map[string]string{"bundle.crt": one}, "must be immutable"},
		"no bundle":        {new(true), nil, `lacks the key "bundle.crt"`},
		"other key":        {new(true), map[string]string{"bundle.crt": one, "ca.crt": one}, `must have no keys other than bundle.crt, but has "ca.crt"`},
		"empty":            {new(true), map[string]string{"bundle.crt": ""}, `must hold PEM certificates in the key "bundle.crt": none found`},
		"not PEM":          {new(true), map[string]string{"bundle.crt": "certificate"}, "must hold PEM certificates"},
		"private key":      {new(true), map[string]string{"bundle.crt": one + key}, `must hold PEM certificates in the key "bundle.crt": block 2 is a EC PRIVATE KEY`},
		"headers":          {new(true), map[string]string{"bundle.crt": headers}, `must hold PEM certificates in the key "bundle.crt": certificate 1 has PEM headers`},
		"cut":              {new(true), map[string]string{"bundle.crt": one + two[:len(two)/2]}, `must hold PEM certificates in the key "bundle.crt": only 1 of 2 blocks`},
		"garbled": {new(true), map[string]string{"bundle.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
			`must hold PEM certificates in the key "bundle.crt": certificate 1 cannot be read`},
		"largest":   {new(true), map[string]string{"bundle.crt": one + strings.Repeat("#", v1alpha3.MaxCABundleSize-len(one))}, ""},
		"too large": {new(true), map[string]string{"bundle.crt": one + strings.Repeat("#", v1alpha3.MaxCABundleSize-len(one)+1)}, "has 65537 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			checkSecretErrors(t, v1alpha3.ValidateCABundle(secret(test.immutable, test.data), secretPath), test.want)
		})
	}
}

func TestCABundle(t *testing.T) {
	one, two := certificate(t), certificate(t)
	written := "# my CA\r\n" + strings.ReplaceAll(one, "\n", "\r\n") + "''' \r\n" + two
	if got := v1alpha3.CABundle(secret(new(true), map[string]string{"bundle.crt": written})); !bytes.Equal(got, []byte(one+two)) {
		t.Errorf("got %q, want %q", got, one+two)
	}
	for _, bad := range []string{"", "x", one + one[:100]} {
		if got := v1alpha3.CABundle(secret(new(true), map[string]string{"bundle.crt": bad})); got != nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}
