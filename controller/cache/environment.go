package cache

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// certificateDirs are where Go looks for certificates of authorities on Linux, and ours behind them. Go takes every file
// in all of them, besides the system's bundle, for whose place the variable SSL_CERT_FILE stands and which stays as it
// is (crypto/x509/root_linux.go). So public authorities count further on in an image that brings them.
var certificateDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs", authoritiesDir}

// clusterDomains are reached without a proxy in every shoot. A leading dot stands for all names of the domain.
var clusterDomains = []string{"localhost", "127.0.0.1", "::1", "kubernetes.default", ".svc", ".cluster.local"}

// environment returns the variables of the registry's process. Those that start with REGISTRY_ would be configuration.
func environment(cache v1alpha3.RegistryCache, shoot Shoot, files files) []corev1.EnvVar {
	// distribution exports traces to localhost by default and logs an error for each attempt.
	result := []corev1.EnvVar{{Name: "OTEL_TRACES_EXPORTER", Value: "none"}}
	if files.authorities != nil {
		result = append(result, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: strings.Join(certificateDirs, ":")})
	}
	return append(result, proxyEnvironment(cache.Proxy, shoot.Networks)...)
}

// proxyEnvironment returns what Go's net/http reads its proxies from (golang.org/x/net/http/httpproxy).
func proxyEnvironment(proxy *v1alpha3.Proxy, networks []string) []corev1.EnvVar {
	if proxy == nil || ptr.Deref(proxy.HTTPProxy, "") == "" && ptr.Deref(proxy.HTTPSProxy, "") == "" {
		return nil
	}
	var result []corev1.EnvVar
	if url := ptr.Deref(proxy.HTTPProxy, ""); url != "" {
		result = append(result, corev1.EnvVar{Name: "HTTP_PROXY", Value: url})
	}
	if url := ptr.Deref(proxy.HTTPSProxy, ""); url != "" {
		result = append(result, corev1.EnvVar{Name: "HTTPS_PROXY", Value: url})
	}
	return append(result, corev1.EnvVar{Name: "NO_PROXY", Value: noProxy(v1alpha3.NoProxyEntries(proxy), networks)})
}

// noProxy returns the comma-separated list of what is reached without a proxy: the shoot's networks and domains, then
// what the user lists.
func noProxy(users, networks []string) string {
	list := slices.Concat(networks, clusterDomains)
	for _, entry := range users {
		if entry != "" && !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	return strings.Join(list, ",")
}
