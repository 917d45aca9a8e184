package v1alpha3

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	namePrefix = "registry-"
	hashLength = 8

	// maxNameLength keeps the longest label value that Kubernetes derives from the name of a
	// StatefulSet within 63 characters: controller-revision-hash=<name>-<hash of up to 10 characters>.
	maxNameLength = validation.DNS1123LabelMaxLength - len("-") - 10
)

// plainHost matches hosts whose dots can be replaced with dashes without a name collision.
var plainHost = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`)

var notDNSLabel = regexp.MustCompile(`[^a-z0-9]`)

var notLabelValue = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// Name returns the name of the StatefulSet, and by default of the Service, of the upstream's cache.
// It is a DNS label of at most 52 characters and unique per upstream. "docker.io" gives
// "registry-docker-io". A host that has a dash or a port, or is too long, gets a hash after two
// dashes. Names without a hash have no two dashes in a row, so the two forms never collide.
func Name(upstream string) string {
	label := notDNSLabel.ReplaceAllString(strings.ToLower(upstream), "-")
	if name := namePrefix + label; plainHost.MatchString(upstream) && len(name) <= maxNameLength {
		return name
	}
	return withHash(namePrefix+label, "--", upstream, maxNameLength)
}

// HostLabel returns the value of the label LabelUpstreamHost: a valid label value that is unique
// per upstream. It is the upstream with ":" replaced by "_". If that is no valid value, it is
// sanitized, shortened and gets a hash. No host contains an underscore, so such a value never
// equals an unchanged upstream.
func HostLabel(upstream string) string {
	value := strings.ReplaceAll(upstream, ":", "_")
	if len(validation.IsValidLabelValue(value)) == 0 {
		return value
	}
	return withHash(notLabelValue.ReplaceAllString(upstream, "_"), "_", upstream, validation.LabelValueMaxLength)
}

// withHash appends separator and a hash of key to s, which it shortens so that the result fits into
// limit characters.
func withHash(s, separator, key string, limit int) string {
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	if room := limit - len(separator) - hashLength; len(s) > room {
		s = s[:room]
	}
	return strings.Trim(s, "-._") + separator + hash
}

// MaxServiceNameSuffixLength is the maximum length of serviceNameSuffix. The Service's name is a
// DNS label.
const MaxServiceNameSuffixLength = validation.DNS1123LabelMaxLength - len(namePrefix)

// ServiceName returns the name of the cache's Service: "registry-<serviceNameSuffix>" if the suffix
// is set, otherwise Name(upstream).
func ServiceName(cache *RegistryCache) string {
	if cache.ServiceNameSuffix != nil {
		return namePrefix + *cache.ServiceNameSuffix
	}
	return Name(cache.Upstream)
}
