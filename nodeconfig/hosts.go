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

// HostsTOML returns the content of the hosts.toml that the script writes for r; without an Endpoint that for direct pulls,
// which the script writes for an upstream with certificates of its own while its cache does not answer.
//
// containerd fails a pull if it cannot read the file that "ca" names. So that is hosts.toml itself, which cannot get lost
// alone, and the certificates come before the first "ca": the file does not parse without them, however it is cut off.
// containerd ignores keys that it does not know, and text around the certificates of a file.
func HostsTOML(r Registry) string {
	var endpointCA, upstreamCA []byte
	if strings.HasPrefix(r.Endpoint, "https:") {
		endpointCA = canonical(r.EndpointCA)
	}
	if strings.HasPrefix(r.UpstreamURL, "https:") {
		upstreamCA = canonical(r.UpstreamCA)
	}
	var toml strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&toml, format+"\n", arguments...) }
	line(Marker)
	line("# Do not edit: this file goes away with the registry cache.")
	if len(endpointCA)+len(upstreamCA) > 0 {
		line(`# What "ca" below refers to: containerd reads the certificates from this very file.`)
		line("certificates = '''\n%s%s'''", endpointCA, upstreamCA)
	}
	line("server = %q", r.UpstreamURL)
	if len(upstreamCA) > 0 {
		line(caLine)
	}
	if r.Endpoint == "" {
		return toml.String()
	}
	line("\n[host.%q]", r.Endpoint)
	line(`  capabilities = ["pull", "resolve"]`)
	line("  dial_timeout = %q", DialTimeout)
	if len(endpointCA) > 0 {
		line("  " + caLine)
	}
	return toml.String()
}

// caLine names a file beside hosts.toml: containerd takes a relative path as one in the same directory.
const caLine = `ca = "` + HostsFile + `"`

// Marked tells whether the content of a hosts.toml carries our mark.
func Marked(content string) bool {
	firstLine, _, _ := strings.Cut(content, "\n")
	return firstLine == Marker
}
