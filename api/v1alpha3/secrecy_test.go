package v1alpha3_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestErrorsContainNoPassword: every error ends up in the Shoot's status and in logs.
func TestErrorsContainNoPassword(t *testing.T) {
	const cache = `"upstream":"a.test"`
	for name, test := range map[string]struct{ cache, path string }{
		"proxy":               {cache + `,"proxy":"http://u:hunter@p"`, "caches[0].proxy"},
		"proxies":             {cache + `,"proxy":{"httpProxy":["http://u:hunter@p"]}`, "caches[0].proxy.httpProxy"},
		"proxy in object":     {cache + `,"proxy":{"httpsProxy":{"url":"http://u:hunter@p"}}`, "caches[0].proxy.httpsProxy"},
		"httpProxy":           {cache + `,"proxy":{"httpProxy":"http://u:hunter@p"}`, "caches[0].proxy.httpProxy"},
		"noProxy":             {cache + `,"proxy":{"noProxy":"a.test,u:hunter@p"}`, "caches[0].proxy.noProxy"},
		"remoteURL":           {cache + `,"remoteURL":"https://u:hunter@p"`, "caches[0].remoteURL"},
		"secretReferenceName": {cache + `,"secretReferenceName":{"password":"hunter"}`, "caches[0].secretReferenceName"},
		"upstream":            {`"upstream":"u:hunter@a.test"`, "caches[0].upstream"},
		"upstream as URL":     {`"upstream":"https://u:hunter@a.test"`, "caches[0].upstream"},
		"upstream twice":      {`"upstream":"u:hunter@a.test"},{"upstream":"u:hunter@a.test"`, "caches[1].upstream"},
		"size":                {cache + `,"volume":{"size":"hunter"}`, "caches[0].volume.size"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := v1alpha3.DecodeConfig([]byte(`{` + header + `,"caches":[{` + test.cache + `}]}`))
			if err == nil {
				err = v1alpha3.Validate(config).ToAggregate()
			}
			if err == nil || !strings.Contains(err.Error(), test.path+": ") || strings.Contains(err.Error(), "hunter") {
				t.Errorf("got %v, want an error at %s without the password", err, test.path)
			}
		})
	}
}
