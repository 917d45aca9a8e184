package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// IPFamily is that of the nodes' addresses, pods and Services.
type IPFamily string

// The IP families.
const (
	IPv4      IPFamily = "ipv4"
	IPv6      IPFamily = "ipv6"
	DualStack IPFamily = "dual"
)

// hostIPv6 is "1" where the kernel was told to do without IPv6; the file is not there where it cannot.
var hostIPv6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6"

// IPv6Missing says why no cluster with IPv6 can be made here, and what to do about it; empty if one can. It has to be called while
// the network is held, see HoldNetwork. local says whether the engine runs on this machine, so that its kernel can be asked.
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
	return withoutIPv6(ranges), nil
}

// withoutIPv6 reads whether the network has IPv6, and its ranges.
func withoutIPv6(inspected string) string {
	fields := strings.Fields(inspected)
	if len(fields) > 1 && fields[0] == "true" {
		for _, subnet := range fields[1:] {
			if isIPv6(subnet) {
				return ""
			}
		}
	}
	return fmt.Sprintf("the docker network %s has no range of IPv6 (%s): the engine could not make it with one, or somebody else made it; "+
		"`docker network rm %s` while nothing uses it, then try again", NetworkName, strings.Join(fields[min(1, len(fields)):], ", "), NetworkName)
}

// isIPv6 says whether an address or a range is of IPv6.
func isIPv6(address string) bool { return strings.Contains(address, ":") }
