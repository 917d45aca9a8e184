package v1alpha3

import "k8s.io/apimachinery/pkg/util/validation"

// MaxServiceNameSuffixLength is the maximum length of a suffix: the Service name is a DNS label.
const MaxServiceNameSuffixLength = validation.DNS1123LabelMaxLength - len(namePrefix)

// These names and ports must not change: objects in running Shoots contain them, and several
// packages, the testbed and operators rely on them.
const (
	// ExtensionType is the type of the Extension resources, and the name that gardenlet gives them.
	ExtensionType = "registry-cache"

	// A new cache never waits for the removal of another cache, because the Services are in a
	// ManagedResource of their own.
	ManagedResourceServices = "extension-registry-cache-services" // the Services of all caches
	ManagedResourceCaches   = "extension-registry-cache"          // all other objects of the caches
	ManagedResourceCleaner  = "extension-registry-cleaner"        // the CleanerDaemonSet
	CleanerDaemonSet        = "registry-cleaner"                  // cleans the nodes of a Shoot

	LabelApp            = "app"           // on every object of a cache, with the value Identity.Name
	LabelUpstreamHost   = "upstream-host" // on every object of a cache except the Service for its peers, with the value Identity.HostLabel
	AnnotationUpstream  = "upstream"      // on a cache's Service
	AnnotationRemoteURL = "remote-url"    // on a cache's Service
	AnnotationScheme    = "scheme"        // on a cache's Service: "http" or "https", the scheme that nodes use

	// Both the Service and the pod of a cache use these ports. CachePort serves the registry API.
	// CacheDebugPort serves health, which nodes check, and metrics. It does not use TLS.
	CachePort      = 5000
	CacheDebugPort = 5001

	// ConditionNodesCleaned is the type of the Extension's condition that reports whether the last
	// clean-up reached every node. Before the first clean-up, there is no such condition.
	ConditionNodesCleaned = "NodesCleaned"

	// ConditionConfigurationValid is the type of the Extension's condition that reports what must be
	// fixed before a hibernated Shoot wakes up. Before the first problem, there is no such condition.
	ConditionConfigurationValid = "ConfigurationValid"

	// ConditionCachesHealthy is the type of the Extension's condition that reports what is wrong with
	// individual caches.
	ConditionCachesHealthy = "CachesHealthy"
)
