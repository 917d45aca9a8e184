package v1alpha3_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

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
	for _, raw := range []string{`{"cleanUps":"x"}`, `{"caches":1}`, ``} {
		if _, err := v1alpha3.DecodeState(&runtime.RawExtension{Raw: []byte(raw)}); err == nil {
			t.Errorf("%s: no error", raw)
		}
	}
}
