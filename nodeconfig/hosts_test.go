package nodeconfig_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	oldtoml "github.com/pelletier/go-toml"
	"github.com/pelletier/go-toml/v2"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

var (
	dockerHub = nodeconfig.Registry{Upstream: "docker.io", Endpoint: "http://10.4.246.205:5000", UpstreamURL: "https://registry-1.docker.io"}
	ipv6      = nodeconfig.Registry{Upstream: "[2001:db8::1]:5000", Endpoint: "http://[fd00::1]:5000", UpstreamURL: "https://[2001:db8::1]:5000"}
)

// hostsFile is the part of hosts.toml that containerd reads (docs/hosts.md of containerd).
type hostsFile struct {
	Server string          `toml:"server"`
	Host   map[string]host `toml:"host"`
}

type host struct {
	Capabilities []string `toml:"capabilities"`
	DialTimeout  string   `toml:"dial_timeout"`
}

// hostsTOML returns the hosts.toml that the script must write for r. Without an Endpoint the file
// is for direct pulls. The script writes such a file if the cache does not answer, and containerd
// would not find the upstream without it.
func hostsTOML(r nodeconfig.Registry) string {
	encoded := nodeconfig.Registry{Upstream: "-", Endpoint: "-", UpstreamURL: "-"}
	if r.Endpoint == "" || strings.HasPrefix(r.Endpoint, "https:") {
		encoded.EndpointCA = r.EndpointCA
	}
	if strings.HasPrefix(r.UpstreamURL, "https:") {
		encoded.UpstreamCA = r.UpstreamCA
	}
	certificates, err := nodeconfig.ParseArgument(encoded.Argument())
	if err != nil {
		panic(err) // the package parses what it has encoded
	}
	const caLine = `ca = "hosts.toml"`
	var toml strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&toml, format+"\n", arguments...) }
	line(nodeconfig.Marker)
	line("# Do not edit: this file goes away with the registry cache.")
	if len(certificates.EndpointCA)+len(certificates.UpstreamCA) > 0 {
		line(`# What "ca" below refers to: containerd reads the certificates from this very file.`)
		line("certificates = '''\n%s%s'''", certificates.EndpointCA, certificates.UpstreamCA)
	}
	line("server = %q", r.UpstreamURL)
	if len(certificates.UpstreamCA) > 0 {
		line(caLine)
	}
	if r.Endpoint == "" {
		return toml.String()
	}
	line("\n[host.%q]", r.Endpoint)
	line(`  capabilities = ["pull", "resolve"]`)
	line(`  dial_timeout = "500ms"`)
	if len(certificates.EndpointCA) > 0 {
		line("  " + caLine)
	}
	return toml.String()
}

func TestHostsTOML(t *testing.T) {
	golden.Compare(t, "hosts.toml", hostsTOML(dockerHub))
	for _, registry := range []nodeconfig.Registry{dockerHub, ipv6} {
		var got hostsFile
		decoder := toml.NewDecoder(strings.NewReader(hostsTOML(registry))).DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
		want := hostsFile{
			Server: registry.UpstreamURL,
			Host:   map[string]host{registry.Endpoint: {Capabilities: []string{"pull", "resolve"}, DialTimeout: "500ms"}},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestContainerd1ReadsHostsTOML: containerd 1 parses hosts.toml with go-toml 1, which reads the
// same as go-toml 2 in each file, and in each truncated one that it accepts.
func TestContainerd1ReadsHostsTOML(t *testing.T) {
	for _, registry := range []nodeconfig.Registry{dockerHub, trusting} {
		content := hostsTOML(registry)
		for length := range len(content) + 1 {
			var got, want map[string]any
			err := oldtoml.Unmarshal([]byte(content[:length]), &got)
			if err != nil && length < len(content) {
				continue // containerd then asks the upstream
			}
			if newErr := toml.Unmarshal([]byte(content[:length]), &want); err != nil || newErr != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("go-toml 1 reads %v, %v, and go-toml 2 %v, %v from\n%s", got, err, want, newErr, content[:length])
			}
		}
	}
}

// TestIPv6ForContainerd1: containerd 1 cannot parse a table whose name contains a bracket, as that
// of an IPv6 endpoint does. So the script writes the same mirror without such a table. It writes
// the table for all other versions, because containerd 2 ignores mirrors without one.
func TestIPv6ForContainerd1(t *testing.T) {
	t.Parallel()
	private := trusting
	private.Endpoint = "https://[fd00::1]:5000"
	for version, old := range map[string]bool{
		"containerd github.com/containerd/containerd v1.7.36 ": true, "containerd github.com/containerd/containerd 1.7.12 ": true,
		"containerd github.com/containerd/containerd/v2 v2.4.2 ": false, "containerd github.com/containerd/containerd/v2 2.1.0 ": false, "": false,
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.tool(t, "containerd", "echo '"+version+"'\n")
			n.tool(t, "curl", "printf '0 200 \\n1 200 \\n'\n")
			p := n.startFor(t, ipv6, private)
			for _, registry := range []nodeconfig.Registry{ipv6, private} {
				p.state(registry.Upstream, "mirror", "answers")
				content, err := os.ReadFile(n.path(registry.Upstream))
				want := hostsTOML(registry)
				if err != nil || !old {
					if string(content) != want {
						t.Errorf("%v, want\n%s\ngot\n%s", err, want, content)
					}
					continue
				}
				var read, expected map[string]any
				must(t, oldtoml.Unmarshal(content, &read), toml.Unmarshal([]byte(strings.Replace(want, "  dial_timeout = \"500ms\"\n", "", 1)), &expected))
				if !reflect.DeepEqual(read, expected) {
					t.Errorf("containerd 1 reads %v, want %v, from\n%s", read, expected, content)
				}
			}
		})
	}
}

func TestHostsPath(t *testing.T) {
	if got, want := nodeconfig.HostsPath("[::1]:5000"), "/etc/containerd/certs.d/[::1]:5000/hosts.toml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMarked(t *testing.T) {
	for content, want := range map[string]bool{
		hostsTOML(dockerHub):                      true,
		nodeconfig.Marker:                         true,
		nodeconfig.Marker + "s\n":                 false,
		"\n" + nodeconfig.Marker:                  false,
		"server = \"x\"\n" + nodeconfig.Marker:    false,
		"# managed by gardener-node-agent\nx\n":   false,
		"":                                        false,
		strings.ToUpper(nodeconfig.Marker) + "\n": false,
	} {
		if got := nodeconfig.Marked(content); got != want {
			t.Errorf("Marked(%q) = %v", content, got)
		}
	}
}
