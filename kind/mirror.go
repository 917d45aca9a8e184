package kind

import (
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// parseMirror reads what a hosts.toml makes containerd do. The order of the [host] tables counts, so the file is walked
// and not decoded into a map.
func parseMirror(upstream string, content []byte) MirrorStatus {
	mirror := MirrorStatus{Upstream: upstream, Server: "https://" + upstream, Managed: nodeconfig.Marked(string(content))}
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
