package v1alpha3_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
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

// checkSecretErrors expects one error at the path that contains want, or none if want is empty.
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
		"blank username":   {new(true), map[string]string{"username": " \n", "password": "p"}, `has an empty value for the key "username"`},
		"blank password":   {new(true), map[string]string{"username": "u", "password": " \n"}, `has an empty value for the key "password"`},
		"echo | base64":    {new(true), map[string]string{"username": "u\n", "password": "p"}, `has white space in the value of the key "username", perhaps a line break at its end`},
		"two words":        {new(true), map[string]string{"username": "u\u00a0u", "password": "p"}, `has white space in the value of the key "username"`},
		"spaces":           {new(true), map[string]string{"username": "u", "password": " a phrase \n"}, ""},
		"bytes":            {new(true), map[string]string{"username": "\xff\xa0\x85", "password": "p"}, ""},
		"no key of Google": {new(true), map[string]string{"username": "_json_key", "password": "p"}, `must have the JSON key of a service account as "password"`},
		"a list":           {new(true), map[string]string{"username": "_json_key", "password": "[]"}, `must have the JSON key of a service account as "password"`},
		"a number":         {new(true), map[string]string{"username": "_json_key", "password": `{"type":1}`}, `must have the JSON key of a service account as "password"`},
		"key of Google":    {new(true), map[string]string{"username": "_json_key", "password": `{"type":"service_account","project_id":"p","private_key":"k"}` + "\n"}, ""},
		"other fields":     {new(true), map[string]string{"username": "_json_key", "password": `{"type":"external_account","credential_source":"/etc/passwd"}`}, "has a JSON key of a service account with other fields than type, project_id"},
		"other user":       {new(true), map[string]string{"username": "_json_key_base64", "password": "p"}, ""},
		"one key too many": {new(true), map[string]string{"username": "u", "password": "p", "email": "e"}, `must have no keys other than username, password, but has "email"`},
	} {
		t.Run(name, func(t *testing.T) {
			checkSecretErrors(t, v1alpha3.ValidateCredentials(secret(test.immutable, test.data), "a.test", secretPath), test.want)
			checkSecretErrors(t, v1alpha3.ValidateCredentials(secret(test.immutable, test.data), ecrHost, secretPath), test.want)
		})
	}
}

const ecrHost = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"

func TestValidateAccessKey(t *testing.T) {
	with := func(changes ...string) map[string]string {
		data := map[string]string{"accessKeyID": "AKIA", "secretAccessKey": "a+/b"}
		for i := 0; i < len(changes); i += 2 {
			data[changes[i]] = changes[i+1]
		}
		return data
	}
	const role = "arn:aws-us-gov:iam::123456789012:role/path/puller"
	for name, test := range map[string]struct {
		upstream string
		data     map[string]string
		want     string
	}{
		"good":              {ecrHost, with(), ""},
		"port":              {ecrHost + ":443", with(), ""},
		"every key":         {ecrHost, with("sessionToken", "t", "roleARN", role), ""},
		"China":             {"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", with(), ""},
		"Europe":            {"123456789012.dkr.ecr.eusc-de-east-1.amazonaws.eu", with(), ""},
		"FIPS":              {"123456789012.dkr.ecr-fips.us-east-1.amazonaws.com", with(), ""},
		"other registry":    {"a.test", with(), "has an access key of AWS, but a.test is not of the form <account>.dkr.ecr.<region>.amazonaws.com: use the keys username and password"},
		"public registry":   {"public.ecr.aws", with(), "has an access key of AWS, but public.ecr.aws is not"},
		"similar host":      {ecrHost + ".evil.test", with(), "has an access key of AWS, but"},
		"other port":        {ecrHost + ":5000", with(), "has an access key of AWS, but"},
		"no account":        {"1.dkr.ecr.eu-central-1.amazonaws.com", with(), "has an access key of AWS, but"},
		"only the role":     {"a.test", map[string]string{"username": "u", "password": "p", "roleARN": role}, "has an access key of AWS, but"},
		"both":              {ecrHost, with("username", "AWS"), `must have no keys other than accessKeyID, secretAccessKey, sessionToken, roleARN, but has "username"`},
		"unknown key":       {ecrHost, with("region", "eu-central-1"), `must have no keys other than accessKeyID, secretAccessKey, sessionToken, roleARN, but has "region"`},
		"no secret":         {ecrHost, map[string]string{"accessKeyID": "AKIA"}, `lacks the key "secretAccessKey"`},
		"no ID":             {ecrHost, map[string]string{"secretAccessKey": "a"}, `lacks the key "accessKeyID"`},
		"empty ID":          {ecrHost, with("accessKeyID", ""), `has an empty value for the key "accessKeyID"`},
		"empty token":       {ecrHost, with("sessionToken", ""), `has an empty value for the key "sessionToken"`},
		"echo | base64":     {ecrHost, with("secretAccessKey", "a\n"), `has white space in the value of the key "secretAccessKey"`},
		"no role":           {ecrHost, with("roleARN", "puller"), `must have a value of the form arn:aws:iam::<account>:role/<name> for the key "roleARN"`},
		"user for a role":   {ecrHost, with("roleARN", "arn:aws:iam::123456789012:user/puller"), `must have a value of the form arn:aws:iam::<account>:role/<name>`},
		"role with a space": {ecrHost, with("roleARN", role+" "), `has white space in the value of the key "roleARN"`},
	} {
		t.Run(name, func(t *testing.T) {
			errs := v1alpha3.ValidateCredentials(secret(new(true), test.data), test.upstream, secretPath)
			if name == "role with a space" && len(errs) == 2 {
				errs = errs[:1] // one for each form
			}
			checkSecretErrors(t, errs, test.want)
		})
	}
	checkSecretErrors(t, v1alpha3.ValidateCredentials(secret(nil, with()), ecrHost, secretPath), "must be immutable")
}

func TestCredentialErrorsContainNoValues(t *testing.T) {
	for _, data := range []map[string]string{
		{"username": "hunter", "pass": "hunter"}, {"username": "hunter\n", "password": ""},
		{"username": "_json_key", "password": "hunter"}, {"username": "_json_key", "password": `{"hunter":"hunter"}`},
		{"accessKeyID": "hunter ", "secretAccessKey": "hunter\n", "roleARN": "hunter"}, {"accessKeyID": "hunter", "password": "hunter"},
	} {
		for _, upstream := range []string{"a.test", ecrHost} {
			errs := v1alpha3.ValidateCredentials(secret(nil, data), upstream, secretPath)
			if len(errs) == 0 || strings.Contains(errs.ToAggregate().Error(), "hunter") {
				t.Errorf("got %v", errs)
			}
		}
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

// TestValidateCABundles checks the limit on the total size.
func TestValidateCABundles(t *testing.T) {
	const quarter = v1alpha3.MaxCABundlesSize / 4
	for name, test := range map[string]struct {
		sizes []int // the size of each cache's CA bundle, -1 for none
		want  string
	}{
		"none":          {[]int{-1, -1}, ""},
		"maximum":       {[]int{quarter, quarter, -1, quarter, quarter}, ""},
		"one byte more": {[]int{quarter, quarter, quarter, quarter + 1}, "caches[3]"},
		"many":          {[]int{quarter, quarter, quarter, quarter, -1, 1, quarter}, "caches[5]"},
		"unknown":       {[]int{0, 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, bundles, sum := &v1alpha3.RegistryConfig{}, map[string][]byte{}, 0
			for i, size := range test.sizes {
				cache := v1alpha3.RegistryCache{Upstream: fmt.Sprintf("r%d.test", i), SecretReferenceName: new("login")}
				if size >= 0 {
					cache.CABundleSecretReferenceName = new("same") // the shared Secret counts for each cache
					bundles[cache.Upstream] = make([]byte, size)
					sum += size
				}
				config.Caches = append(config.Caches, cache)
			}
			got := v1alpha3.ValidateCABundles(config, bundles)
			if test.want == "" && len(got) == 0 {
				return
			}
			want := fmt.Sprintf("%s.caBundleSecretReferenceName: Invalid value: the CA bundles of all caches have %d bytes in total, at most 262144 are allowed: "+
				"remove the CAs that no upstream needs", test.want, sum)
			if len(got) != 1 || got[0].Error() != want {
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "a.test"},
		{Upstream: "b.test", SecretReferenceName: new("creds"), CABundleSecretReferenceName: new("ca")},
		{Upstream: "c.test", SecretReferenceName: new("creds")},
	}}
	var got []string
	for _, r := range v1alpha3.References(config) {
		got = append(got, strings.Join([]string{r.Name, r.Upstream, string(r.Kind), r.Path.String()}, " "))
	}
	want := []string{
		"creds b.test credentials caches[1].secretReferenceName",
		"ca b.test CA bundle caches[1].caBundleSecretReferenceName",
		"creds c.test credentials caches[2].secretReferenceName",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReferenceValidatesByKind(t *testing.T) {
	credentials := secret(new(true), map[string]string{"username": "u", "password": "p"})
	bundle := secret(new(true), map[string]string{"bundle.crt": certificate(t)})
	for _, r := range v1alpha3.References(&v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "b.test", SecretReferenceName: new("creds"), CABundleSecretReferenceName: new("ca")},
	}}) {
		good, bad := credentials, bundle
		if r.Kind == v1alpha3.ReferenceCABundle {
			good, bad = bundle, credentials
		}
		if errs := r.Validate(good); len(errs) > 0 {
			t.Errorf("%s: a valid Secret is rejected: %v", r.Path, errs)
		}
		if errs := r.Validate(bad); len(errs) == 0 || errs[0].Field != r.Path.String() {
			t.Errorf("%s: an invalid Secret gives %v", r.Path, errs)
		}
	}
}

func TestReferenceValidateEntry(t *testing.T) {
	r := v1alpha3.Reference{Name: "creds", Path: field.NewPath("caches").Index(1).Child("secretReferenceName")}
	const path = `caches[1].secretReferenceName: Invalid value: "creds": `
	for name, test := range map[string]struct {
		to   autoscalingv1.CrossVersionObjectReference
		want string
	}{
		"Secret":         {autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"}, ""},
		"no entry":       {autoscalingv1.CrossVersionObjectReference{}, path + "must be the name of an entry of spec.resources"},
		"ConfigMap":      {autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "s"}, path + "must refer to a Secret of apiVersion v1, but the entry refers to a ConfigMap of apiVersion v1"},
		"other Secret":   {autoscalingv1.CrossVersionObjectReference{APIVersion: "x/v1", Kind: "Secret", Name: "s"}, path + "must refer to a Secret of apiVersion v1, but the entry refers to a Secret of apiVersion x/v1"},
		"without a kind": {autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Name: "s"}, path + "must refer to a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := r.ValidateEntry(test.to)
			if len(errs) == 0 && test.want == "" {
				return
			}
			if len(errs) != 1 || test.want == "" || !strings.HasPrefix(errs[0].Error(), test.want) {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
	for namespace, want := range map[string]string{"garden-dev": "garden-dev/s", "": "s"} {
		want = path + "refers to the Secret " + want + ", which does not exist"
		if got := r.Missing(namespace, "s").ToAggregate().Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
