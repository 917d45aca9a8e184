package nodeconfig

import (
	"fmt"
	"path"
	"strings"
)

const (
	// CertsDir is containerd's registry configuration directory on a node. containerd reads it on
	// every pull.
	CertsDir = "/etc/containerd/certs.d"
	// HostsFile is the name of containerd's file in the directory of an upstream.
	HostsFile = "hosts.toml"
	// Marker is the first line of every hosts.toml that the extension writes. Files without it are
	// neither changed nor removed.
	Marker = "# managed by gardener-extension-registry-cache"
	// DialTimeout limits how long containerd waits for a connection to a cache before it tries the
	// upstream. The default is 30 s for each object of an image, and containerd < 2.1 cannot change
	// it.
	DialTimeout = "1s"
	// TempPattern matches the script's temporary files, which are directly in CertsDir.
	TempPattern = ".configure-containerd-registries.*"
)

// HostsPath returns the path of the hosts.toml of an upstream on a node.
func HostsPath(upstream string) string {
	return path.Join(CertsDir, upstream, HostsFile)
}

// HostsTOML returns the hosts.toml that the script writes for r. Without an Endpoint the file is
// for direct pulls. The script writes such a file for an upstream with its own CA bundle while the
// cache does not answer.
//
// containerd fails a pull if it cannot read the file that "ca" names. So "ca" names hosts.toml
// itself, which cannot go missing alone. The certificates come before the first "ca", so a
// truncated file does not parse without them. containerd ignores unknown keys, and text around the
// certificates of a file.
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

// caLine names a file in the same directory: containerd resolves relative paths against that of
// hosts.toml.
const caLine = `ca = "` + HostsFile + `"`

// Marked returns whether the content of a hosts.toml starts with Marker.
func Marked(content string) bool {
	firstLine, _, _ := strings.Cut(content, "\n")
	return firstLine == Marker
}
