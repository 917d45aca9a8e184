package v1alpha3_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

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
				errs = errs[:1] // this role breaks two rules
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
