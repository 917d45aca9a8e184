//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// blackholeTable is the table of the node's packet filter that drops what goes to a cache.
const blackholeTable = "e2e-blackhole"

// blackhole makes a node's packets to an address vanish without an answer, until the scenario ends: that is what a cache
// on a dead node looks like, in contrast to a Service without endpoints, which kube-proxy refuses at once.
func blackhole(ctx context.Context, p *scenarioRun, node *cluster.Node, ip string) {
	p.Helper()
	p.Afterwards(ctx, func(ctx context.Context) error { return endBlackhole(ctx, node) })
	// The priority is before that of kube-proxy's address translation (dstnat, -100).
	_, err := node.Script(ctx, `nft -f - <<EOF
table inet $1
delete table inet $1
table inet $1 { chain output { type filter hook output priority -300; $2 daddr $3 drop; }; }
EOF`, blackholeTable, packetFamily(ip), ip)
	p.Check(err)
}

// packetFamily is what nft calls the packets to an address.
func packetFamily(ip string) string {
	if strings.Contains(ip, ":") {
		return "ip6"
	}
	return "ip"
}

// endBlackholeScript does nothing on a node without one.
const endBlackholeScript = `
nft list table inet ` + blackholeTable + ` >/dev/null 2>&1 || exit 0
nft delete table inet ` + blackholeTable

func endBlackhole(ctx context.Context, node *cluster.Node) error {
	if _, err := node.Script(ctx, endBlackholeScript); err != nil {
		return fmt.Errorf("end the black hole: %w", err)
	}
	return nil
}
