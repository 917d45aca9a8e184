package v1alpha3

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

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

// State is what status.state of an Extension holds. Unlike the providerStatus, it moves along when
// the control plane is migrated to another seed.
type State struct {
	// RegistryConfig is the config that the caches were last deployed with, nil if there was none.
	*RegistryConfig `json:",inline"`
	// CleanUps counts the clean-ups of the nodes that have started.
	CleanUps int64 `json:"cleanUps,omitempty"`
}

// DecodeState decodes status.state of an Extension and sets the defaults of its config. For nil it
// returns an empty State. It ignores unknown fields, for the same reason as DecodeStatus.
func DecodeState(raw *runtime.RawExtension) (State, error) {
	var state State
	if raw == nil {
		return state, nil
	}
	if err := json.Unmarshal(raw.Raw, &state); err != nil {
		return State{}, fmt.Errorf("cannot decode State: %w", err)
	}
	if state.RegistryConfig != nil {
		SetDefaults(state.RegistryConfig)
	}
	return state, nil
}
