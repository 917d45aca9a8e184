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

	// maxNameLength keeps the longest label value that Kubernetes derives from the name of a StatefulSet,
	// controller-revision-hash=<name>-<hash of up to 10 characters>, within 63 characters.
	maxNameLength = validation.DNS1123LabelMaxLength - len("-") - 10
)

// plainHost matches the hosts whose dots can become dashes without two of them getting the same name.
var plainHost = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)*$`)

var notDNSLabel = regexp.MustCompile(`[^a-z0-9]`)

var notLabelValue = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// Name returns the name of the Service and of the StatefulSet that serve the upstream: a DNS label of at most 52
// characters, different for every upstream. "docker.io" gives "registry-docker-io". A host that has a dash or a port, or
// that is too long, gets a hash after two dashes: a name without hash has no two dashes in a row, so the two forms never
// meet.
func Name(upstream string) string {
	label := notDNSLabel.ReplaceAllString(strings.ToLower(upstream), "-")
	if name := namePrefix + label; plainHost.MatchString(upstream) && len(name) <= maxNameLength {
		return name
	}
	return withHash(namePrefix+label, "--", upstream, maxNameLength)
}

// HostLabel returns the value of the label LabelUpstreamHost for the upstream: a valid label value, different for every
// upstream. It is the upstream itself with "_" in place of ":", and shortened with a hash where it would not fit into 63
// characters. An underscore is not part of any host, so that a replaced or shortened value never equals a plain one.
func HostLabel(upstream string) string {
	value := strings.ReplaceAll(upstream, ":", "_")
	if len(validation.IsValidLabelValue(value)) == 0 {
		return value
	}
	return withHash(notLabelValue.ReplaceAllString(upstream, "_"), "_", upstream, validation.LabelValueMaxLength)
}

// withHash cuts s such that separator and hash of key fit into limit characters behind it.
func withHash(s, separator, key string, limit int) string {
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	if room := limit - len(separator) - hashLength; len(s) > room {
		s = s[:room]
	}
	return strings.Trim(s, "-._") + separator + hash
}

// MaxServiceNameSuffixLength is the longest serviceNameSuffix in characters: the name of a Service is a DNS label.
const MaxServiceNameSuffixLength = validation.DNS1123LabelMaxLength - len(namePrefix)

// ServiceName returns the name of the Service that serves the cache: "registry-<serviceNameSuffix>" if that is given,
// otherwise Name of the upstream, which is also the name of everything else that belongs to the cache.
func ServiceName(cache *RegistryCache) string {
	if cache.ServiceNameSuffix != nil {
		return namePrefix + *cache.ServiceNameSuffix
	}
	return Name(cache.Upstream)
}
