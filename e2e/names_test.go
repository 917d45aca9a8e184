//go:build e2e

package e2e

// Names that others rely on (docs/architecture.md). They are written out here and not taken from the
// packages that define them, so that a scenario goes red when one of them changes.
const (
	alpha = "alpha.upstream.test"
	beta  = "beta.upstream.test"
	// gamma has no cache unless a scenario gives it one.
	gamma = "gamma.upstream.test"
	// private is there only while a scenario needs it.
	private = "private.upstream.test"

	shootNamespace = "shoot--local--local"
	extensionName  = "registry-cache"

	cachesManagedResource  = "extension-registry-cache"
	cleanerManagedResource = "extension-registry-cleaner"
	cleanerDaemonSet       = "registry-cleaner"

	upstreamHostLabel = "upstream-host"

	certsDir   = "/etc/containerd/certs.d"
	scriptPath = "/opt/bin/configure-containerd-registries.sh"
	unitName   = "configure-containerd-registries.service"
	unitPath   = "/etc/systemd/system/" + unitName
)

func hostsPath(host string) string {
	return certsDir + "/" + host + "/hosts.toml"
}
