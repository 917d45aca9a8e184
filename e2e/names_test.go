//go:build e2e

package e2e

import "github.com/gardener-extensions/registry-cache/api/v1alpha3"

// Names that others rely on (docs/architecture.md). TestContract of package v1alpha3 pins those it
// defines; the others are spelled here, so that a scenario fails when one of them changes.
const (
	alpha = "alpha.upstream.test"
	beta  = "beta.upstream.test"
	// gamma has no cache unless a scenario gives it one.
	gamma = "gamma.upstream.test"
	// private is there only while a scenario needs it.
	private = "private.upstream.test"

	shootNamespace = "shoot--local--local"
	extensionName  = v1alpha3.ExtensionType

	cachesManagedResource  = v1alpha3.ManagedResourceCaches
	cleanerManagedResource = v1alpha3.ManagedResourceCleaner
	cleanerDaemonSet       = v1alpha3.CleanerDaemonSet

	upstreamHostLabel = v1alpha3.LabelUpstreamHost

	certsDir   = "/etc/containerd/certs.d"
	scriptPath = "/opt/bin/configure-containerd-registries.sh"
	unitName   = "configure-containerd-registries.service"
	unitPath   = "/etc/systemd/system/" + unitName
)

func hostsPath(host string) string {
	return certsDir + "/" + host + "/hosts.toml"
}
