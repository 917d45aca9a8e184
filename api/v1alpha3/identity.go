package v1alpha3

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identity distinguishes the objects of one cache from those of all other caches in a Shoot. It
// must not change while the cache runs: Kubernetes finds a volume only by the name of its
// StatefulSet, and cannot change the labels that a StatefulSet selects.
type Identity struct {
	// Upstream is RegistryCache.Upstream.
	Upstream string `json:"upstream"`
	// Name is the name of the StatefulSet, the value of the label LabelApp, and a part of all other
	// names. It is a DNS label of at most 52 characters.
	Name string `json:"name"`
	// HostLabel is the value of the label LabelUpstreamHost.
	HostLabel string `json:"hostLabel"`
	// Address is the last known cluster IP of the cache's Service. It is empty if unknown.
	Address string `json:"address,omitempty"`
	// OrderedReady is set for a StatefulSet with this podManagementPolicy, which cannot be changed:
	// gardener-extension-registry-cache has created it.
	OrderedReady bool `json:"orderedReady,omitempty"`
	// Previous are the earlier Services of the cache, which had other names.
	Previous []PreviousService `json:"previous,omitempty"`
}

// PreviousService is a Service that nodes may still use.
type PreviousService struct {
	// Name is the name of the Service.
	Name string `json:"name"`
	// Since is the time at which another Service replaced this one.
	Since metav1.Time `json:"since"`
}

// ServiceName returns the name of the Service that nodes pull from: "registry-<serviceNameSuffix>"
// if the cache has a suffix, and otherwise Name.
func (i Identity) ServiceName(cache *RegistryCache) string {
	if cache.ServiceNameSuffix != nil {
		return namePrefix + *cache.ServiceNameSuffix
	}
	return i.Name
}

// HadService reports whether the cache already uses a Service with its configured name. In a
// hibernated Shoot, a name that the owner has chosen may belong to another Service.
func (i Identity) HadService(cache *RegistryCache) bool {
	return i.Address != "" || i.ServiceName(cache) == i.Name
}

// Identities are the identities of the caches of one Shoot.
type Identities []Identity

// Of returns the identity of the upstream's cache, and whether there is one.
func (i Identities) Of(upstream string) (Identity, bool) {
	at := slices.IndexFunc(i, func(known Identity) bool { return known.Upstream == upstream })
	if at < 0 {
		return Identity{}, false
	}
	return i[at], true
}

// Owner returns the upstream of the cache whose objects have these labels, or an empty string.
func (i Identities) Owner(labels map[string]string) string {
	for _, known := range i {
		if known.Name == labels[LabelApp] && known.HostLabel == labels[LabelUpstreamHost] {
			return known.Upstream
		}
	}
	return ""
}

// Identify returns one identity per cache, in the order of the caches. A running cache keeps its
// identity. A new cache gets the names that gardener-extension-registry-cache would give it:
// "docker.io" gives "registry-docker-io". If another cache uses this name, the new name ends with a
// hash. Names of running caches that are about to be removed also count: a new cache of the same
// name would get their volume.
func Identify(caches []RegistryCache, running Identities) Identities {
	owners := map[string]string{}
	for _, known := range running {
		owners[known.Name] = known.Upstream
	}
	result := make(Identities, 0, len(caches))
	for i := range caches {
		upstream := caches[i].Upstream
		id, found := running.Of(upstream)
		for digits := 0; !found; digits = max(digits+1, hashLength) {
			id = newIdentity(upstream, digits)
			owner, taken := owners[id.Name]
			found = !taken || owner == upstream
		}
		owners[id.Name] = upstream
		result = append(result, id)
	}
	return result
}

const (
	namePrefix = "registry-"

	// maxLabelLength keeps the name of the StatefulSet short enough for the label values of up to 63
	// characters that Kubernetes derives from it: controller-revision-hash=<name>-<hash of up to 10
	// characters>.
	maxLabelLength = 43
	// hashLength is the minimum number of hexadecimal digits of a hash.
	hashLength = 5
)

var notLabelValue = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// newIdentity returns an identity whose names end with a hash of at least digits digits. If digits
// is 0, only a name that would be too long gets a hash.
func newIdentity(upstream string, digits int) Identity {
	label := strings.Trim(notLabelValue.ReplaceAllString(upstream, "-"), "-._")
	if len(label) > maxLabelLength {
		digits = max(digits, hashLength)
	}
	if digits > 0 {
		sum := sha256.Sum256([]byte(upstream))
		label = label[:min(len(label), max(0, maxLabelLength-1-digits))] + "-" + hex.EncodeToString(sum[:])[:digits]
	}
	return Identity{Upstream: upstream, HostLabel: label, Name: namePrefix + strings.ReplaceAll(strings.ToLower(label), ".", "-")}
}
