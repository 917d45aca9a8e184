package v1alpha3

// Names and ports that several packages, the testbed and operators rely on. Objects in running
// Shoots carry them, so they must not change.
const (
	// ExtensionType is the type of the Extensions, and the name that gardenlet gives each of them.
	ExtensionType = "registry-cache"

	// ManagedResourceCaches is the name of the ManagedResource with the objects of all caches.
	ManagedResourceCaches = "extension-registry-cache"
	// ManagedResourceCleaner is the name of the ManagedResource with CleanerDaemonSet.
	ManagedResourceCleaner = "extension-registry-cleaner"
	// CleanerDaemonSet is the name of the DaemonSet that cleans the nodes of a Shoot.
	CleanerDaemonSet = "registry-cleaner"

	// LabelUpstreamHost is the label of every object of a cache. Its value is HostLabel(upstream).
	LabelUpstreamHost = "upstream-host"
	// AnnotationUpstream is the annotation of a cache's Service that holds the upstream.
	AnnotationUpstream = "upstream"
	// AnnotationRemoteURL is the annotation of a cache's Service that holds the remote URL.
	AnnotationRemoteURL = "remote-url"

	// CachePort is the port of the registry API, of both the Service and the pod of a cache.
	CachePort = 5000
	// CacheDebugPort is the port of health and metrics, of both the Service and the pod of a cache.
	// Network policies admit only the control plane to it.
	CacheDebugPort = 5001

	// ConditionNodesCleaned is the type of the Extension's condition that tells whether the last
	// clean-up reached every node. It is missing before the first clean-up.
	ConditionNodesCleaned = "NodesCleaned"
)
