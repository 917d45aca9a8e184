package nodeconfig

import (
	"fmt"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

const (
	// CertsDir is the folder of registry configuration that containerd reads on every pull.
	CertsDir = "/etc/containerd/certs.d"
	// HostsFile is the name of containerd's file in the directory of an upstream. Its content comes
	// from the function hosts_toml of configure-containerd-registries.sh.
	HostsFile = "hosts.toml"
	// Marker is the first line of the extension's hosts.toml files. The extension never changes or
	// deletes other hosts.toml files, except those that TakenOver reports.
	Marker = "# managed by gardener-extension-registry-cache"
	// NodeAgentMarker is the first line of the hosts.toml files that gardener-node-agent writes for
	// other extensions.
	NodeAgentMarker = "# managed by gardener-node-agent"
	// TempPattern matches the script's temporary files, which are directly in CertsDir.
	TempPattern = ".configure-containerd-registries.*"
)

// HostsPath returns the path of the hosts.toml of an upstream on a node.
func HostsPath(upstream string) string {
	return path.Join(CertsDir, upstream, HostsFile)
}

// Marked reports whether the content of a hosts.toml starts with Marker.
func Marked(content string) bool { return hasMark(content, Marker) }

func hasMark(content, mark string) bool {
	firstLine, _, _ := strings.Cut(content, "\n")
	return firstLine == mark
}

// TakenOver reports whether gardener-node-agent wrote the content of a hosts.toml for one of the
// endpoints. It did so for gardener-extension-registry-cache, whose Services, and thus addresses,
// this extension takes over. The scheme may have changed since then.
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

// HostConfig is the content of a hosts.toml: a pull asks Hosts in this order, and then Server.
type HostConfig struct {
	Upstream string   `json:"upstream"`
	Hosts    []string `json:"hosts"`
	Server   string   `json:"server"`
	// Managed reports whether the file starts with Marker.
	Managed bool   `json:"managed"`
	Problem string `json:"problem,omitempty"`
}

// ParseHosts parses any hosts.toml, even one that the extension did not write. If containerd cannot
// read the file, Problem is the reason. ParseHosts does not decode the file into a map, since the
// order of the [host] tables matters.
func ParseHosts(upstream string, content []byte) HostConfig {
	config := HostConfig{Upstream: upstream, Server: "https://" + upstream, Managed: Marked(string(content))}
	var parser unstable.Parser
	parser.Reset(content)
	inHost, inHosts := false, false // in [host."…"], and in [host] with an inline table for each host
	for parser.NextExpression() {
		expression := parser.Expression()
		keys := keysOf(expression)
		switch {
		case expression.Kind == unstable.Table:
			inHost, inHosts = len(keys) == 2 && keys[0] == "host", len(keys) == 1 && keys[0] == "host"
			if inHost {
				config.Hosts = append(config.Hosts, keys[1])
			}
		case expression.Kind == unstable.KeyValue && inHosts:
			if len(keys) == 1 && expression.Value().Kind == unstable.InlineTable {
				config.Hosts = append(config.Hosts, keys[0])
			}
		case expression.Kind == unstable.KeyValue && !inHost && len(keys) == 1 && keys[0] == "server":
			config.Server = string(expression.Value().Data)
		}
	}
	if err := parser.Error(); err != nil {
		config.Problem = fmt.Sprintf("containerd cannot read it: %v", err)
	}
	return config
}

func keysOf(expression *unstable.Node) (keys []string) {
	for key := expression.Key(); key.Next(); {
		keys = append(keys, string(key.Node().Data))
	}
	return keys
}
