package v1alpha3

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxServiceNameSuffixLength is the length of a suffix that makes the longest valid Service name.
const MaxServiceNameSuffixLength = validation.DNS1123LabelMaxLength - len(namePrefix)

// These names and ports must not change: objects in running Shoots contain them, and several
// packages, the testbed and operators rely on them.
const (
	// ExtensionType is the type of the Extension resources, and the name that gardenlet gives them.
	ExtensionType = "registry-cache"

	// A new cache never waits until a removed one is gone, because the Services are in a
	// ManagedResource of their own.
	ManagedResourceServices = "extension-registry-cache-services" // the Services of all caches
	ManagedResourceCaches   = "extension-registry-cache"          // all other objects of the caches
	ManagedResourceCleaner  = "extension-registry-cleaner"        // the CleanerDaemonSet
	CleanerDaemonSet        = "registry-cleaner"                  // cleans the nodes of a Shoot

	LabelApp            = "app"           // on every object of a cache, with the value Identity.Name
	LabelUpstreamHost   = "upstream-host" // on every object of a cache, with the value Identity.HostLabel
	AnnotationUpstream  = "upstream"      // on a cache's Service
	AnnotationRemoteURL = "remote-url"    // on a cache's Service
	AnnotationScheme    = "scheme"        // on a cache's Service, "http" or "https": how nodes ask it

	// Both the Service and the pod of a cache use these ports. CachePort serves the registry API.
	// CacheDebugPort serves health, which nodes ask for, and metrics, without TLS.
	CachePort      = 5000
	CacheDebugPort = 5001

	// ConditionNodesCleaned is the type of the Extension's condition that reports whether the last
	// clean-up reached every node. Before the first clean-up, there is no such condition.
	ConditionNodesCleaned = "NodesCleaned"

	// ConditionConfigurationValid is the type of the Extension's condition that reports what must be
	// fixed before a hibernated Shoot wakes up. It exists only after a first problem.
	ConditionConfigurationValid = "ConfigurationValid"

	// ConditionCachesHealthy is the type of the Extension's condition that reports what is wrong with
	// single caches.
	ConditionCachesHealthy = "CachesHealthy"
)

// State is the content of status.state of an Extension. When Gardener migrates a control plane, it
// copies status.state to the other seed, but not the providerStatus.
type State struct {
	// RegistryConfig is the config with which caches were last deployed, and new caches that are
	// about to be. Nil if there were none.
	*RegistryConfig `json:",inline"`
	// CleanUps is the number of clean-ups of the nodes that have been started.
	CleanUps int64 `json:"cleanUps,omitempty"`
	// Running are the identities of the deployed caches. A state of an early version has none.
	Running Identities `json:"running,omitempty"`
	// TakenOver is the annotation gardener.cloud/timestamp of the reconciliation that has taken over
	// the caches of gardener-extension-registry-cache. A later one that changes the caches removes it.
	TakenOver string `json:"takenOver,omitempty"`
}

// DecodeState decodes status.state of an Extension and sets the defaults of its config. For nil it
// returns an empty State. Like DecodeStatus, it ignores unknown fields. It accepts a missing
// apiVersion, but no other one.
func DecodeState(raw *runtime.RawExtension) (State, error) {
	var state State
	if raw == nil {
		return state, nil
	}
	if err := json.Unmarshal(raw.Raw, &state); err != nil {
		return State{}, fmt.Errorf("decode State: %w", err)
	}
	if state.RegistryConfig == nil {
		return state, nil
	}
	if written := state.APIVersion; written != "" && written != SchemeGroupVersion.String() {
		return State{}, fmt.Errorf("decode State: its apiVersion is %s, this version of the extension reads %s: "+
			"install the version that wrote it, or remove status.state by kubectl edit --subresource=status", written, SchemeGroupVersion)
	}
	SetDefaults(state.RegistryConfig)
	return state, nil
}
