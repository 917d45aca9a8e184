package cache

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// certificateDirs are the directories in which Go looks for CA certificates on Linux, plus the one
// with the user's CA bundle. SSL_CERT_DIR replaces the whole list. SSL_CERT_FILE stays unset, so
// the CA bundle of the image is still trusted (crypto/x509/root_linux.go).
var certificateDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs", caBundleDir}

// clusterDomains are reached without a proxy in every shoot. A leading dot matches all names of the
// domain.
var clusterDomains = []string{"localhost", "127.0.0.1", "::1", "kubernetes.default", ".svc", ".cluster.local"}

// environment returns the environment variables of the registry container. None may start with
// REGISTRY_: distribution reads those as configuration.
func environment(cache v1alpha3.RegistryCache, shoot Shoot, mounted []mountedObject) []corev1.EnvVar {
	// By default, distribution exports traces to localhost and logs an error for each attempt.
	result := []corev1.EnvVar{{Name: "OTEL_TRACES_EXPORTER", Value: "none"}}
	if slices.ContainsFunc(mounted, func(m mountedObject) bool { return m.dir == caBundleDir }) {
		result = append(result, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: strings.Join(certificateDirs, ":")})
	}
	return append(result, proxyEnvironment(cache.Proxy, shoot.Networks)...)
}

// proxyEnvironment returns the proxy variables that Go's net/http reads
// (golang.org/x/net/http/httpproxy).
func proxyEnvironment(proxy *v1alpha3.Proxy, networks []string) []corev1.EnvVar {
	if proxy == nil {
		return nil
	}
	var result []corev1.EnvVar
	for _, variable := range []corev1.EnvVar{
		{Name: "HTTP_PROXY", Value: ptr.Deref(proxy.HTTPProxy, "")}, {Name: "HTTPS_PROXY", Value: ptr.Deref(proxy.HTTPSProxy, "")},
	} {
		if variable.Value != "" {
			result = append(result, variable)
		}
	}
	if result == nil {
		return nil
	}
	return append(result, corev1.EnvVar{Name: "NO_PROXY", Value: noProxy(v1alpha3.NoProxyEntries(proxy), networks)})
}

// noProxy returns the value of NO_PROXY: the shoot's networks and domains, then the user's entries.
func noProxy(userEntries, networks []string) string {
	list := slices.Concat(networks, clusterDomains)
	for _, entry := range userEntries {
		if entry != "" && !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	return strings.Join(list, ",")
}
