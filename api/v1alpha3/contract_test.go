package v1alpha3

import "testing"

// TestContract repeats the names, so that none of them changes by accident.
func TestContract(t *testing.T) {
	for want, got := range map[string]string{
		"registry-cache":                    ExtensionType,
		"extension-registry-cache-services": ManagedResourceServices,
		"extension-registry-cache":          ManagedResourceCaches,
		"extension-registry-cleaner":        ManagedResourceCleaner,
		"registry-cleaner":                  CleanerDaemonSet,
		"app":                               LabelApp,
		"upstream-host":                     LabelUpstreamHost,
		"upstream":                          AnnotationUpstream,
		"remote-url":                        AnnotationRemoteURL,
		"scheme":                            AnnotationScheme,
		"NodesCleaned":                      ConditionNodesCleaned,
	} {
		if got != want {
			t.Errorf("got %q, want %q: objects in running Shoots have this name", got, want)
		}
	}
	if CachePort != 5000 || CacheDebugPort != 5001 {
		t.Errorf("ports %d and %d, want 5000 and 5001", CachePort, CacheDebugPort)
	}
}
