package hostsfile

import (
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Mirror is one hosts.toml: pulls from Upstream ask Hosts in this order, and Server at last.
type Mirror struct {
	Upstream string   `json:"upstream"`
	Hosts    []string `json:"hosts"`
	Server   string   `json:"server"`
	// Managed says that the file carries the extension's mark; otherwise it is somebody else's.
	Managed bool   `json:"managed"`
	Problem string `json:"problem,omitempty"`
}

// Parse reads what a hosts.toml makes containerd do. What containerd could not read is a Problem. The order of the [host] tables
// counts, so the file is walked and not decoded into a map.
func Parse(upstream string, content []byte) Mirror {
	mirror := Mirror{Upstream: upstream, Server: "https://" + upstream, Managed: nodeconfig.Marked(string(content))}
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
				mirror.Hosts = append(mirror.Hosts, keys[1])
			}
		case expression.Kind == unstable.KeyValue && !inHost && len(keys) == 1 && keys[0] == "server":
			mirror.Server = string(expression.Value().Data)
		}
	}
	if err := parser.Error(); err != nil {
		mirror.Problem = fmt.Sprintf("containerd cannot read it: %v", err)
	}
	return mirror
}

func keysOf(expression *unstable.Node) []string {
	var keys []string
	for key := expression.Key(); key.Next(); {
		keys = append(keys, string(key.Node().Data))
	}
	return keys
}
