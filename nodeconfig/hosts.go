package nodeconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"path"
	"strings"
)

const (
	// CertsDir is containerd's registry configuration on a node. containerd reads it on every pull.
	CertsDir = "/etc/containerd/certs.d"
	// HostsFile is the name of containerd's file in the directory of an upstream.
	HostsFile = "hosts.toml"
	// Marker is the first line of the extension's hosts.toml files. Files without it are never changed
	// or deleted.
	Marker = "# managed by gardener-extension-registry-cache"
	// NodeAgentMarker is the first line of the hosts.toml files that gardener-node-agent writes for
	// other extensions.
	NodeAgentMarker = "# managed by gardener-node-agent"
	// DialTimeout limits how long containerd waits for a connection to a cache before it tries the
	// upstream, for each manifest and blob. Until a node detects lost packets, a pull of five layers
	// takes 3 s longer. containerd < 2.1 always uses its default, 30 s.
	DialTimeout = "500ms"
	// TempPattern matches the script's temporary files, which are directly in CertsDir.
	TempPattern = ".configure-containerd-registries.*"
)

// HostsPath returns the path of the hosts.toml of an upstream on a node.
func HostsPath(upstream string) string {
	return path.Join(CertsDir, upstream, HostsFile)
}

// HostsTOML returns the hosts.toml that the script writes for r. Without an Endpoint the file is
// for direct pulls. The script writes such a file if the cache does not answer, and containerd
// would not find the upstream without it.
//
// containerd fails a pull if it cannot read the file that "ca" names. So "ca" names hosts.toml
// itself. The certificates come before the first "ca", so a truncated file with a "ca" contains the
// certificates. containerd ignores unknown keys, and text around the certificates of a file.
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

// caLine names hosts.toml itself: containerd looks for the file in the directory of hosts.toml.
const caLine = `ca = "` + HostsFile + `"`

// Marked reports whether the content of a hosts.toml starts with Marker.
func Marked(content string) bool { return hasMark(content, Marker) }

func hasMark(content, mark string) bool {
	firstLine, _, _ := strings.Cut(content, "\n")
	return firstLine == mark
}

// TakenOver reports whether gardener-node-agent wrote the content of a hosts.toml for one of the
// endpoints. It did so for gardener-extension-registry-cache, whose Services, and so addresses,
// this extension takes over. The scheme may have changed since.
func TakenOver(content string, endpoints []string) bool {
	if !hasMark(content, NodeAgentMarker) {
		return false
	}
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		for _, endpoint := range endpoints {
			_, address, _ := strings.Cut(endpoint, "://")
			if line == `[host."http://`+address+`"]` || line == `[host."https://`+address+`"]` {
				return true
			}
		}
	}
	return false
}

// Registry is what a node needs to pull from one upstream registry through its cache.
type Registry struct {
	// Upstream is <host>[:<port>] as in image references, and the name of a directory in CertsDir.
	Upstream string
	// Endpoint is the URL of the cache, such as "http://10.4.246.205:5000".
	Endpoint string
	// UpstreamURL is the URL of the upstream, to which containerd falls back.
	UpstreamURL string
	// EndpointCA is the PEM CA bundle for an https Endpoint. It may be empty.
	EndpointCA []byte
	// UpstreamCA is the PEM CA bundle for an https UpstreamURL, in addition to public CAs, or empty.
	UpstreamCA []byte
}

// Argument returns the argument of the script for r: <upstream_host>,<endpoint>,<upstream_url>, and
// with CA bundles ,<endpoint_ca>[,<upstream_ca>]. A CA bundle contains each certificate as DER in
// base64, separated by dots. Anything that is not a PEM certificate is omitted.
func (r Registry) Argument() string {
	parts := []string{r.Upstream, r.Endpoint, r.UpstreamURL}
	endpointCA, upstreamCA := encodeCertificates(r.EndpointCA), encodeCertificates(r.UpstreamCA)
	switch {
	case upstreamCA != "":
		parts = append(parts, endpointCA, upstreamCA)
	case endpointCA != "":
		parts = append(parts, endpointCA)
	}
	return strings.Join(parts, ",")
}

// ParseArgument is the inverse of Registry.Argument. It returns the certificates as canonical PEM,
// without text between them.
func ParseArgument(argument string) (Registry, error) {
	parts := strings.Split(argument, ",")
	if len(parts) < 3 || len(parts) > 5 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Registry{}, fmt.Errorf("argument %q is not <upstream_host>,<endpoint>,<upstream_url>[,<endpoint_ca>[,<upstream_ca>]]", argument)
	}
	parts = append(parts, "", "") // CA bundles may be missing
	endpointCA, err := decodeCertificates(parts[3])
	if err != nil {
		return Registry{}, fmt.Errorf("endpoint CA in the argument for %s: %w", parts[0], err)
	}
	upstreamCA, err := decodeCertificates(parts[4])
	if err != nil {
		return Registry{}, fmt.Errorf("upstream CA in the argument for %s: %w", parts[0], err)
	}
	return Registry{Upstream: parts[0], Endpoint: parts[1], UpstreamURL: parts[2], EndpointCA: endpointCA, UpstreamCA: upstreamCA}, nil
}

const certificateBlock = "CERTIFICATE"

// certificates returns the certificates in text as DER, except those that x509.CertPool would skip.
func certificates(text []byte) (found [][]byte) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return found
		}
		if block.Type != certificateBlock || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, block.Bytes)
		}
	}
}

// canonical returns only the certificates in text, as PEM. PEM consists of base64, BEGIN and END
// lines, so it cannot end the TOML string that contains it.
func canonical(text []byte) []byte {
	var encoded []byte
	for _, der := range certificates(text) {
		encoded = append(encoded, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	}
	return encoded
}

func encodeCertificates(text []byte) string {
	found := certificates(text)
	words := make([]string, 0, len(found))
	for _, der := range found {
		words = append(words, base64.StdEncoding.EncodeToString(der))
	}
	return strings.Join(words, ".")
}

func decodeCertificates(word string) ([]byte, error) {
	if word == "" {
		return nil, nil
	}
	var text []byte
	for i, encoded := range strings.Split(word, ".") {
		der, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("certificate %d is not valid base64: %w", i, err)
		}
		if len(der) == 0 {
			return nil, fmt.Errorf("certificate %d is empty", i)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	}
	return text, nil
}
