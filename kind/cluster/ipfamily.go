package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// IPFamily is the IP family of the nodes, pods and Services.
type IPFamily string

// The IP families.
const (
	IPv4      IPFamily = "ipv4"
	IPv6      IPFamily = "ipv6"
	DualStack IPFamily = "dual"
)

// hostIPv6 contains "1" if IPv6 is disabled. It does not exist on a kernel without IPv6.
var hostIPv6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6"

// IPv6Missing returns why a cluster with IPv6 cannot be created and what to do about it, or "" if
// it can. The caller must hold the network (HoldNetwork). local means that the engine runs on this
// machine's kernel.
func IPv6Missing(ctx context.Context, local bool) (reason string, err error) {
	if local {
		disabled, err := os.ReadFile(hostIPv6)
		if errors.Is(err, os.ErrNotExist) {
			return "the kernel of this machine has no IPv6", nil
		}
		if err == nil && strings.TrimSpace(string(disabled)) == "1" {
			return "IPv6 is disabled on this machine (sysctl net.ipv6.conf.all.disable_ipv6)", nil
		}
	}
	ctx, cancel := networkContext(ctx)
	defer cancel()
	ranges, err := command.Output(ctx, "docker", "network", "inspect", "--format",
		"{{.EnableIPv6}}{{range .IPAM.Config}} {{.Subnet}}{{end}}", NetworkName)
	if err != nil {
		return "", fmt.Errorf("inspecting the docker network %s: %w", NetworkName, err)
	}
	return missingIPv6(ranges), nil
}

// missingIPv6 returns what is wrong with the output of docker network inspect: whether IPv6 is
// enabled, then the subnets.
func missingIPv6(inspected string) string {
	fields := strings.Fields(inspected)
	if len(fields) > 1 && fields[0] == "true" {
		for _, subnet := range fields[1:] {
			if isIPv6(subnet) {
				return ""
			}
		}
	}
	return fmt.Sprintf("the docker network %s has no IPv6 subnet (%s): "+
		"the engine could not create it with one, or something else created it; run `docker network rm %s` while nothing uses it, then try again",
		NetworkName, strings.Join(fields[min(1, len(fields)):], ", "), NetworkName)
}

// isIPv6 reports whether an address or a subnet is IPv6.
func isIPv6(address string) bool { return strings.Contains(address, ":") }
