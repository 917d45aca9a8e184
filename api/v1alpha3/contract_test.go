package v1alpha3_test

import (
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestContract spells the names a second time, so that none of them changes by accident.
func TestContract(t *testing.T) {
	for want, got := range map[string]string{
		"registry-cache":             v1alpha3.ExtensionType,
		"extension-registry-cache":   v1alpha3.ManagedResourceCaches,
		"extension-registry-cleaner": v1alpha3.ManagedResourceCleaner,
		"registry-cleaner":           v1alpha3.CleanerDaemonSet,
		"upstream-host":              v1alpha3.LabelUpstreamHost,
		"upstream":                   v1alpha3.AnnotationUpstream,
		"remote-url":                 v1alpha3.AnnotationRemoteURL,
		"NodesCleaned":               v1alpha3.ConditionNodesCleaned,
	} {
		if got != want {
			t.Errorf("got %q, want %q: objects in running Shoots have this name", got, want)
		}
	}
	if v1alpha3.CachePort != 5000 || v1alpha3.CacheDebugPort != 5001 {
		t.Errorf("ports %d and %d, want 5000 and 5001", v1alpha3.CachePort, v1alpha3.CacheDebugPort)
	}
}
