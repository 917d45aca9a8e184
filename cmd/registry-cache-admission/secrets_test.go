package main

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestValidateRefusesWhatCannotWork: validate refuses Secrets with which a cache would fail, and
// old API versions.
func TestValidateRefusesWhatCannotWork(t *testing.T) {
	const (
		config    = "spec.extensions[1].providerConfig."
		path      = config + "caches[0].secretReferenceName: Invalid value: the Secret garden-dev/s "
		ecr       = `[{upstream: 123456789012.dkr.ecr.eu-central-1.amazonaws.com, secretReferenceName: creds}]`
		accessKey = "immutable: true\nstringData: {accessKeyID: AKIA, secretAccessKey: s3cr3t"
	)
	private, ecrShoot := shootNamed("a", private, resources)+"---\n", shootNamed("a", ecr, resources)+"---\n"
	old := func(version, caches string) string {
		return strings.ReplaceAll(shootNamed("a", caches), "v1alpha3", version)
	}
	for name, test := range map[string]struct{ input, out string }{
		"echo | base64":       {private + secretNamed("s", "immutable: true\ndata: {username: dQo=, password: cA==}\n"), path + `has white space in the value of the key "username"`},
		"no JSON":             {private + secretNamed("s", "immutable: true\nstringData: {username: _json_key, password: s3cr3t}\n"), path + "must have the JSON key of a service account"},
		"access key":          {ecrShoot + secretNamed("s", accessKey+"}\n"), ""},
		"access key and role": {ecrShoot + secretNamed("s", accessKey+", roleARN: 'arn:aws:iam::123456789012:role/puller'}\n"), ""},
		"password for ECR":    {ecrShoot + secretNamed("s", credentials), ""},
		"access key at a":     {private + secretNamed("s", accessKey+"}\n"), path + "has an access key of AWS, but a.test is not of the form"},
		"region":              {ecrShoot + secretNamed("s", accessKey+", region: x}\n"), path + "must have no keys other than accessKeyID, secretAccessKey, sessionToken, roleARN"},
		"v1alpha1":            {old("v1alpha1", "[{upstream: a.test, size: 10Gi, garbageCollectionEnabled: true}]"), config + "apiVersion: Invalid value"},
		"v1alpha2":            {old("v1alpha2", "[{upstream: a.test, garbageCollection: {enabled: true}}]"), config + "apiVersion: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, notes := validate(t, test.input, "-f", "-")
			want := map[bool]int{true: program.ExitFine, false: program.ExitFailed}[test.out == ""]
			if code != want || !strings.HasPrefix(out, test.out) || strings.Count(out, "\n") != want || strings.Contains(out+notes, "s3cr3t") {
				t.Errorf("exit code %d, standard output %q, standard error %q", code, out, notes)
			}
		})
	}
}
