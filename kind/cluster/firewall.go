package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// natTable is the testbed's nftables table on a node.
const natTable = "registry-cache-testbed"

// masquerade returns the input of `nft -f` that replaces a pod's address with the node's address in
// packets to other machines, because machines outside the cluster have no route to pods. The option
// ipMasq of the CNI plugin ptp does the same, but it runs iptables several times for each pod.
func masquerade(podCIDRs []string) string {
	var rules strings.Builder
	for _, podCIDR := range podCIDRs {
		family := "ip"
		if isIPv6(podCIDR) {
			family = "ip6"
		}
		fmt.Fprintf(&rules, "    oifname \"eth0\" %s saddr %s masquerade\n", family, podCIDR)
	}
	// Deleting a table that does not exist is an error, so the first line creates it.
	return fmt.Sprintf(`table inet %[1]s
delete table inet %[1]s
table inet %[1]s {
  chain postrouting {
    type nat hook postrouting priority srcnat;
%[2]s  }
}
`, natTable, rules.String())
}

// applyMasquerade replaces the node's table in one transaction.
func (n *Node) applyMasquerade(ctx context.Context, podCIDRs []string) error {
	if _, err := n.run(ctx, []byte(masquerade(podCIDRs)), "nft", "-f", "-"); err != nil {
		return fmt.Errorf("masquerading the pods of %s: %w", n.Name(), err)
	}
	return nil
}

// podRanges returns the address ranges of a node's pods: podCIDRs, and egressRange if podCIDRs
// contains no IPv4 range.
func podRanges(podCIDRs []string) []string {
	if slices.ContainsFunc(podCIDRs, isIPv4) {
		return podCIDRs
	}
	return append(slices.Clone(podCIDRs), egressRange)
}
