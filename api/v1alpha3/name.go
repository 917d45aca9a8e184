package v1alpha3

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	namePrefix = "registry-"
	hashLength = 8

	// maxNameLength is the maximum length of a StatefulSet's name. Kubernetes derives label values of
	// up to 63 characters from it: controller-revision-hash=<name>-<hash of up to 10 characters>.
	maxNameLength = validation.DNS1123LabelMaxLength - len("-") - 10
)

// plainHost matches hosts whose dots can be replaced with dashes without a name collision.
var plainHost = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`)

var notDNSLabel = regexp.MustCompile(`[^a-z0-9]`)

var notLabelValue = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// Name returns the name of the StatefulSet of an upstream's cache. The Service has the same name by
// default. The name is a DNS label of at most 52 characters and unique per upstream. "docker.io"
// gives "registry-docker-io". If the host has a dash or a port, or is too long, the name ends in
// two dashes and a hash. A name without a hash has no two dashes in a row, so the two forms never
// collide.
func Name(upstream string) string {
	label := notDNSLabel.ReplaceAllString(strings.ToLower(upstream), "-")
	if name := namePrefix + label; plainHost.MatchString(upstream) && len(name) <= maxNameLength {
		return name
	}
	return withHash(namePrefix+label, "--", upstream, maxNameLength)
}

// HostLabel returns the value of the label LabelUpstreamHost: a valid label value that is unique
// per upstream. It is the upstream with ":" replaced by "_", a character that no host contains. If
// this is not a valid label value, HostLabel sanitizes and shortens it, and appends a hash of the
// upstream.
func HostLabel(upstream string) string {
	value := strings.ReplaceAll(upstream, ":", "_")
	if len(validation.IsValidLabelValue(value)) == 0 {
		return value
	}
	return withHash(notLabelValue.ReplaceAllString(upstream, "_"), "_", upstream, validation.LabelValueMaxLength)
}

// withHash returns s, separator and a hash of key. If this would exceed limit, it shortens s.
func withHash(s, separator, key string, limit int) string {
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	if room := limit - len(separator) - hashLength; len(s) > room {
		s = s[:room]
	}
	return strings.Trim(s, "-._") + separator + hash
}

// MaxServiceNameSuffixLength is the longest suffix with which the Service's name is a DNS label.
const MaxServiceNameSuffixLength = validation.DNS1123LabelMaxLength - len(namePrefix)

// ServiceName returns the name of the cache's Service: "registry-<serviceNameSuffix>" if the suffix
// is set, otherwise Name(upstream).
func ServiceName(cache *RegistryCache) string {
	if cache.ServiceNameSuffix != nil {
		return namePrefix + *cache.ServiceNameSuffix
	}
	return Name(cache.Upstream)
}

// These names and ports must not change: objects in running Shoots contain them, and several
// packages, the testbed and operators rely on them.
const (
	// ExtensionType is the type of the Extension resources, and the name that gardenlet gives them.
	ExtensionType = "registry-cache"

	ManagedResourceCaches  = "extension-registry-cache"   // the objects of all caches
	ManagedResourceCleaner = "extension-registry-cleaner" // the CleanerDaemonSet
	CleanerDaemonSet       = "registry-cleaner"           // cleans the nodes of a Shoot

	LabelUpstreamHost   = "upstream-host" // on every object of a cache, with the value HostLabel(upstream)
	AnnotationUpstream  = "upstream"      // on a cache's Service
	AnnotationRemoteURL = "remote-url"    // on a cache's Service

	// Both the Service and the pod of a cache use these ports. CachePort serves the registry API.
	// CacheDebugPort serves health and metrics; network policies open it only for the control plane.
	CachePort      = 5000
	CacheDebugPort = 5001

	// ConditionNodesCleaned is the type of the Extension's condition that reports whether the last
	// clean-up reached every node. Before the first clean-up, there is no such condition.
	ConditionNodesCleaned = "NodesCleaned"

	// ConditionCachesHealthy is the type of the Extension's condition that reports what is wrong with
	// single caches.
	ConditionCachesHealthy = "CachesHealthy"
)

// State is the content of status.state of an Extension. When Gardener migrates a control plane, it
// copies the State to the other seed, but not the providerStatus.
type State struct {
	// RegistryConfig is the config with which caches were last deployed, nil if there were none.
	*RegistryConfig `json:",inline"`
	// CleanUps counts how many clean-ups of the nodes have been started.
	CleanUps int64 `json:"cleanUps,omitempty"`
}

// DecodeState decodes status.state of an Extension and sets the defaults of its config. For nil it
// returns an empty State. Like DecodeStatus, it ignores unknown fields.
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
