package nodeconfig_test

import (
	"reflect"
	"strings"
	"testing"

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

func TestHostsTOML(t *testing.T) {
	golden.Compare(t, "hosts.toml", nodeconfig.HostsTOML(dockerHub))
	for _, registry := range []nodeconfig.Registry{dockerHub, ipv6} {
		var got hostsFile
		decoder := toml.NewDecoder(strings.NewReader(nodeconfig.HostsTOML(registry))).DisallowUnknownFields()
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

func TestHostsPath(t *testing.T) {
	if got, want := nodeconfig.HostsPath("[::1]:5000"), "/etc/containerd/certs.d/[::1]:5000/hosts.toml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMarked(t *testing.T) {
	for content, want := range map[string]bool{
		nodeconfig.HostsTOML(dockerHub):           true,
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
