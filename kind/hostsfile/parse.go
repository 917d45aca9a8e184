package hostsfile

import (
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Mirror describes a hosts.toml: a pull from Upstream asks Hosts in this order, then Server.
type Mirror struct {
	Upstream string   `json:"upstream"`
	Hosts    []string `json:"hosts"`
	Server   string   `json:"server"`
	// Managed reports whether the file contains the extension's mark.
	Managed bool   `json:"managed"`
	Problem string `json:"problem,omitempty"`
}

// Parse parses a hosts.toml. If containerd cannot read the file, Problem is the reason. Parse does
// not decode the file into a map, since the order of the [host] tables matters.
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

func keysOf(expression *unstable.Node) (keys []string) {
	for key := expression.Key(); key.Next(); {
		keys = append(keys, string(key.Node().Data))
	}
	return keys
}
