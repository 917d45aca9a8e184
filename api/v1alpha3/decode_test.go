package v1alpha3_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const header = `"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig"`

// everyField is a config for gardener/gardener-extension-registry-cache.
const everyField = `{` + header + `,"caches":[` +
	`{"upstream":"docker.io"},` +
	`{"upstream":"ghcr.io","remoteURL":"https://ghcr.io","volume":{"size":"100Gi","storageClassName":"premium"},"garbageCollection":{"ttl":"24h0m0s"}}]}`

func TestDecodeConfig(t *testing.T) {
	config, err := v1alpha3.DecodeConfig([]byte(everyField))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Caches) != 2 {
		t.Fatalf("got %d caches, want 2", len(config.Caches))
	}
	first, second := config.Caches[0], config.Caches[1]
	if first.Upstream != "docker.io" || first.RemoteURL != nil || first.Volume != nil || first.GarbageCollection != nil {
		t.Errorf("decoding sets missing fields: %+v", first)
	}
	if *second.RemoteURL != "https://ghcr.io" || second.Volume.Size.String() != "100Gi" ||
		*second.Volume.StorageClassName != "premium" || second.GarbageCollection.TTL.Duration != 24*time.Hour {
		t.Errorf("decoding loses fields: %+v", second)
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(encoded, &got), json.Unmarshal([]byte(everyField), &want)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("encoding is not the inverse of decoding:\ngot  %s\nwant %s", encoded, everyField)
	}
}

func TestDecodeConfigReadsYAML(t *testing.T) {
	config, err := v1alpha3.DecodeConfig([]byte(
		"apiVersion: registry.extensions.gardener.cloud/v1alpha3\nkind: RegistryConfig\ncaches:\n- upstream: quay.io\n"))
	if err != nil || config.Caches[0].Upstream != "quay.io" {
		t.Fatalf("got %+v, %v", config, err)
	}
}

func TestDecodeConfigReportsEachPath(t *testing.T) {
	cache := func(fields string) string {
		return `{` + header + `,"caches":[{"upstream":"a.test"},{` + fields + `}]}`
	}
	for name, test := range map[string]struct {
		raw  string
		want []string
	}{
		"unknown field":        {cache(`"upstream":"b.test","upstrem":"x"`), []string{`unknown field "caches[1].upstrem"`}},
		"unknown field at top": {`{` + header + `,"cache":[]}`, []string{`unknown field "cache"`}},
		"misplaced field":      {cache(`"tls":true`), []string{`unknown field "caches[1].tls"`}},
		"wrong case":           {cache(`"remoteUrl":"x"`), []string{`unknown field "caches[1].remoteUrl"`}},
		"duplicate field":      {cache(`"upstream":"b.test","upstream":"c.test"`), []string{`duplicate field "caches[1].upstream"`}},
		"no duration":          {cache(`"garbageCollection":{"ttl":"7d"}`), []string{`caches[1].garbageCollection.ttl`, `7d`}},
		"duration as number":   {cache(`"garbageCollection":{"ttl":7}`), []string{`caches[1].garbageCollection.ttl`}},
		"no quantity":          {cache(`"volume":{"size":"ten"}`), []string{`caches[1].volume.size`, `quantities must match`}},
		"number for a string":  {cache(`"upstream":5`), []string{`caches[1].upstream`}},
		"string for an object": {cache(`"volume":"10Gi"`), []string{`caches[1].volume`, `must be an object`}},
		"object for a list":    {`{` + header + `,"caches":{}}`, []string{`caches`, `must be a list`}},
		"two errors": {cache(`"volume":{"size":"x"},"garbageCollection":{"ttl":"y"}`),
			[]string{`caches[1].volume.size`, `caches[1].garbageCollection.ttl`}},
		"other version": {`{"apiVersion":"registry.extensions.gardener.cloud/v1","kind":"RegistryConfig"}`,
			[]string{`registry.extensions.gardener.cloud/v1`}},
		"other kind":            {`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus"}`, []string{`RegistryStatus`}},
		"no JSON":               {`{`, []string{`decode RegistryConfig`}},
		"empty":                 {``, []string{`RegistryConfig is empty`}},
		"null":                  {`null`, []string{`RegistryConfig is empty`}},
		"a list where a string": {cache(`"remoteURL":["https://x"]`), []string{`caches[1].remoteURL`}},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := v1alpha3.DecodeConfig([]byte(test.raw))
			if err == nil {
				t.Fatalf("accepted %s as %+v", test.raw, config)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}

// TestDecodeConfigOf2023: one error tells how to migrate a config of v1alpha1 or v1alpha2.
func TestDecodeConfigOf2023(t *testing.T) {
	const group = "registry.extensions.gardener.cloud/"
	for _, raw := range []string{
		`{"apiVersion":"` + group + `v1alpha1","kind":"RegistryConfig","caches":[{"upstream":"docker.io","size":"10Gi","garbageCollectionEnabled":true}]}`,
		`{"apiVersion":"` + group + `v1alpha1","kind":"RegistryConfig","caches":[{"upstream":"docker.io","size":10,"garbageCollection":{"enabled":true}}]}`,
		"apiVersion: " + group + "v1alpha2\nkind: RegistryConfig\ncaches:\n- upstream: docker.io\n  garbageCollection: {enabled: false}\n",
	} {
		_, err := v1alpha3.DecodeConfig([]byte(raw))
		errs := v1alpha3.DecodeErrors(err)
		if len(errs) != 1 || errs[0].Field != "apiVersion" {
			t.Fatalf("got %v", errs)
		}
		for _, want := range []string{group + "v1alpha3", "volume.size", "garbageCollection.ttl", "168h"} {
			if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "\n") || strings.Contains(text, "scheme") {
				t.Errorf("%q does not say %s in one line", text, want)
			}
		}
	}
	if _, err := v1alpha3.DecodeConfig([]byte(`{"apiVersion":"other/v1alpha2","kind":"RegistryConfig"}`)); err == nil || strings.Contains(err.Error(), "volume.size") {
		t.Errorf("another group: %v", err)
	}
}

func TestDecodeStatus(t *testing.T) {
	status, err := v1alpha3.DecodeStatus([]byte(`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus",` +
		`"caches":[{"upstream":"docker.io","endpoint":"http://10.0.0.1:5000","remoteURL":"https://registry-1.docker.io","caSecretName":"later"}]}`))
	if err != nil {
		t.Fatalf("a status with a field of a newer version is rejected: %v", err)
	}
	want := v1alpha3.RegistryCacheStatus{Upstream: "docker.io", Endpoint: "http://10.0.0.1:5000", RemoteURL: "https://registry-1.docker.io"}
	if len(status.Caches) != 1 || status.Caches[0] != want {
		t.Errorf("got %+v, want %+v", status.Caches, want)
	}
	if _, err := v1alpha3.DecodeStatus(nil); !errors.Is(err, v1alpha3.ErrEmpty) {
		t.Errorf("nil gives %v, want ErrEmpty", err)
	}
	if _, err := v1alpha3.DecodeStatus([]byte(everyField)); err == nil {
		t.Error("a RegistryConfig is accepted as a status")
	}
}

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

func TestDecodeState(t *testing.T) {
	if state, err := v1alpha3.DecodeState(nil); err != nil || state.RegistryConfig != nil || state.CleanUps != 0 {
		t.Errorf("nil: %+v, %v", state, err)
	}
	raw := `{"kind":"RegistryConfig","caches":[{"upstream":"a.test","new":1}],"cleanUps":2,"new":{}}`
	state, err := v1alpha3.DecodeState(&runtime.RawExtension{Raw: []byte(raw)})
	if err != nil {
		t.Fatal(err)
	}
	if state.CleanUps != 2 || len(state.Caches) != 1 || state.Caches[0].RemoteURL == nil {
		t.Errorf("want 2 clean-ups and one cache with defaults, got %+v", state)
	}
	for _, raw := range []string{
		`{"cleanUps":"x"}`, `{"caches":1}`, ``,
		`{"apiVersion":"registry.extensions.gardener.cloud/v1beta1","kind":"RegistryConfig","caches":[{"upstream":"a.test"}]}`, `{"apiVersion":"example.org/v1"}`,
	} {
		if _, err := v1alpha3.DecodeState(&runtime.RawExtension{Raw: []byte(raw)}); err == nil {
			t.Errorf("%s: no error", raw)
		}
	}
}
