package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/file"
)

const (
	// NetworkName names the Docker network that the nodes of all kind clusters use.
	NetworkName = "kind"

	// networkLabel marks a network that a testbed created. All testbeds share this network.
	networkLabel = "registry-cache.testbed.network=shared"
	// networkSubnet is the IPv6 subnet that kind derives from the network's name.
	networkSubnet  = "fc00:f853:ccd:e793::/64"
	networkTimeout = 30 * time.Second
)

// networkCreation is a lock file for creating the network: Docker allows duplicate network names.
var networkCreation = filepath.Join(file.LockDirectory(), "network-creation.lock")

// EnsureNetwork creates kind's network unless it exists, with kind's own options and a label for
// RemoveNetwork.
func EnsureNetwork(ctx context.Context) error {
	ctx, cancel := networkContext(ctx)
	defer cancel()
	unlock, err := file.Lock(ctx, networkCreation, networkTimeout)
	if err != nil {
		return fmt.Errorf("wait for another testbed that creates the docker network %s: %w", NetworkName, err)
	}
	defer unlock()

	found, err := networks(ctx, "name=^"+NetworkName+"$")
	if err != nil || len(found) > 0 {
		return err
	}
	if _, err = command.Output(ctx, networkCommand(true)...); err != nil { // try without IPv6, as kind does
		_, err = command.Output(ctx, networkCommand(false)...)
	}
	if err != nil {
		return fmt.Errorf("create the docker network %s: %w", NetworkName, err)
	}
	return nil
}

// RemoveNetwork removes kind's network if EnsureNetwork created it and no container, running or
// not, is on it. Otherwise RemoveNetwork does nothing.
func RemoveNetwork(ctx context.Context) error {
	ctx, cancel := networkContext(ctx)
	defer cancel()
	created, err := networks(ctx, "label="+networkLabel)
	if err != nil {
		return err
	}
	for _, id := range created {
		users, err := command.Output(ctx, "docker", "ps", "--all", "--quiet", "--filter", "network="+id)
		if err != nil {
			return fmt.Errorf("list the containers on the docker network %s: %w", NetworkName, err)
		}
		if strings.TrimSpace(users) != "" {
			continue
		}
		if _, err := command.Output(ctx, "docker", "network", "rm", id); err != nil && !strings.Contains(err.Error(), "has active endpoints") {
			return fmt.Errorf("remove the docker network %s: %w", NetworkName, err)
		}
	}
	return nil
}

func networkContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, networkTimeout, fmt.Errorf("the docker engine took longer than %s", networkTimeout))
}

// networkCommand returns the command with which kind's docker provider would create its network.
func networkCommand(ipv6 bool) []string {
	argv := []string{"docker", "network", "create", "--driver=bridge", "--label=" + networkLabel,
		"--opt=com.docker.network.bridge.enable_ip_masquerade=true"}
	if ipv6 {
		argv = append(argv, "--ipv6", "--subnet="+networkSubnet)
	}
	return append(argv, NetworkName)
}

func networks(ctx context.Context, filter string) ([]string, error) {
	out, err := command.Output(ctx, "docker", "network", "ls", "--quiet", "--no-trunc", "--filter", filter)
	if err != nil {
		return nil, fmt.Errorf("list the docker networks: %w", err)
	}
	return strings.Fields(out), nil
}

// hostIPv6 is a file that contains "1" if IPv6 is disabled. A kernel without IPv6 lacks the file.
var hostIPv6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6"

// IPv6Missing returns why a cluster with IPv6 cannot be created and what to do about it, or "" if
// one can be created. The network must exist. If local is true, the engine runs on this machine's
// kernel.
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
		return "", fmt.Errorf("inspect the docker network %s: %w", NetworkName, err)
	}
	return missingIPv6(ranges), nil
}

// missingIPv6 returns why the network has no IPv6 subnet, or "" if it has one. Its argument is the
// output of `docker network inspect`: whether IPv6 is enabled, then the subnets.
func missingIPv6(inspected string) string {
	fields := strings.Fields(inspected)
	if len(fields) > 1 && fields[0] == "true" && slices.ContainsFunc(fields[1:], isIPv6) {
		return ""
	}
	return fmt.Sprintf("the docker network %s has no IPv6 subnet (%s): "+
		"the engine could not add one, or another program created the network; run `docker network rm %s` while nothing uses it, then try again",
		NetworkName, strings.Join(fields[min(1, len(fields)):], ", "), NetworkName)
}

// isIPv6 reports whether an address or a subnet is IPv6.
func isIPv6(address string) bool { return strings.Contains(address, ":") }
