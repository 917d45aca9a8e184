package v1alpha3_test

import (
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func TestDecodeErrorsReportEachPath(t *testing.T) {
	for name, test := range map[string]struct {
		raw  string
		want []string
	}{
		"none":      {everyField, nil},
		"unknown":   {`{` + header + `,"caches":[{"upstrem":"x"}],"cache":[]}`, []string{"caches[0].upstrem", "cache"}},
		"duplicate": {`{` + header + `,"caches":[{"upstream":"x","upstream":"y"}]}`, []string{"caches[0].upstream"}},
		"types":     {`{` + header + `,"caches":[{"upstream":5,"volume":{"size":"x"}}]}`, []string{"caches[0].upstream", "caches[0].volume.size"}},
		"kind":      {`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus"}`, []string{""}},
		"no JSON":   {`{`, []string{""}},
		"empty":     {``, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := v1alpha3.DecodeConfig([]byte(test.raw))
			got := map[string]bool{}
			for _, err := range v1alpha3.DecodeErrors(err) {
				got[err.Field] = true
				if err.Detail == "" {
					t.Errorf("%s has no text", err.Field)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("got errors at %v, want %q", got, test.want)
			}
			for _, path := range test.want {
				if !got[path] {
					t.Errorf("no error at %q, got errors at %v", path, got)
				}
			}
		})
	}
}
