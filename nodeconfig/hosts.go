package nodeconfig

import (
	"fmt"
	"path"
	"strings"
)

const (
	// CertsDir is containerd's registry configuration directory on a node. containerd reads it on every pull.
	CertsDir = "/etc/containerd/certs.d"
	// HostsFile is the name of containerd's file in the directory of each upstream.
	HostsFile = "hosts.toml"
	// Marker is the first line of every hosts.toml that is ours. A file without it belongs to somebody else and is
	// neither changed nor removed.
	Marker = "# managed by gardener-extension-registry-cache"
	// DialTimeout bounds how long containerd waits for a connection to a cache before it goes to the upstream. Without
	// it that is 30 s for each object of an image, which containerd < 2.1 cannot change.
	DialTimeout = "1s"
	// TempPattern matches the temporary files of the script, which lie directly in CertsDir.
	TempPattern = ".configure-containerd-registries.*"
)

// HostsPath returns where the hosts.toml of an upstream lies on a node.
func HostsPath(upstream string) string {
	return path.Join(CertsDir, upstream, HostsFile)
}

// HostsTOML returns the content of the hosts.toml that the script writes for r.
func HostsTOML(r Registry) string {
	return fmt.Sprintf(`%s
# Do not edit: this file goes away with the registry cache.
server = "%s"

[host."%s"]
  capabilities = ["pull", "resolve"]
  dial_timeout = "%s"
`, Marker, r.UpstreamURL, r.Endpoint, DialTimeout)
}

// Marked tells whether the content of a hosts.toml carries our mark.
func Marked(content string) bool {
	firstLine, _, _ := strings.Cut(content, "\n")
	return firstLine == Marker
}
