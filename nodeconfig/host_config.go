package nodeconfig

import (
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"
)

// HostConfig is the content of a hosts.toml: a pull from Upstream asks Hosts in this order, then
// Server.
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
	inHost := false
	for parser.NextExpression() {
		expression := parser.Expression()
		keys := keysOf(expression)
		switch {
		case expression.Kind == unstable.Table:
			inHost = len(keys) == 2 && keys[0] == "host"
			if inHost {
				config.Hosts = append(config.Hosts, keys[1])
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
