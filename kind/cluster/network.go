package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

const (
	// NetworkName is Docker's network on which kind puts all nodes of all its clusters.
	NetworkName = "kind"

	networkLabel = "registry-cache.testbed=network"
	// networkSubnet is the IPv6 range that kind derives from the name of its network.
	networkSubnet  = "fc00:f853:ccd:e793::/64"
	networkTimeout = 30 * time.Second
)

// networkMutex keeps clusters that are created in parallel from creating the network twice: Docker allows two networks
// of one name.
var networkMutex sync.Mutex

// EnsureNetwork creates kind's network, with kind's own options, unless it is there. One that we create has a label, so
// that RemoveNetwork can tell.
func EnsureNetwork(ctx context.Context) error {
	ctx, cancel := networkContext(ctx)
	defer cancel()
	networkMutex.Lock()
	defer networkMutex.Unlock()

	found, err := networks(ctx, "name=^"+NetworkName+"$")
	if err != nil || len(found) > 0 {
		return err
	}
	if _, err := command.Output(ctx, networkCommand(true)...); err == nil {
		return nil
	}
	// Hosts without IPv6 do without, and so does kind.
	if _, err := command.Output(ctx, networkCommand(false)...); err != nil {
		// A kind of somebody else may have been faster.
		if found, listErr := networks(ctx, "name=^"+NetworkName+"$"); listErr == nil && len(found) > 0 {
			return nil
		}
		return fmt.Errorf("creating the docker network %s: %w", NetworkName, err)
	}
	return nil
}

// RemoveNetwork removes kind's network if EnsureNetwork created it and no container, running or not, belongs to it.
// Otherwise, and when there is none, it does nothing.
func RemoveNetwork(ctx context.Context) error {
	ctx, cancel := networkContext(ctx)
	defer cancel()
	networkMutex.Lock()
	defer networkMutex.Unlock()

	ours, err := networks(ctx, "label="+networkLabel)
	if err != nil {
		return err
	}
	for _, id := range ours {
		users, err := command.Output(ctx, "docker", "ps", "--all", "--quiet", "--filter", "network="+id)
		if err != nil {
			return fmt.Errorf("listing the containers on the docker network %s: %w", NetworkName, err)
		}
		if strings.TrimSpace(users) != "" {
			continue
		}
		if _, err := command.Output(ctx, "docker", "network", "rm", id); err != nil && !strings.Contains(err.Error(), "has active endpoints") {
			return fmt.Errorf("removing the docker network %s: %w", NetworkName, err)
		}
	}
	return nil
}

func networkContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, networkTimeout, fmt.Errorf("the docker engine took over %s", networkTimeout))
}

// networkCommand returns the command that kind's docker provider would create its network by.
func networkCommand(ipv6 bool) []string {
	argv := []string{"docker", "network", "create", "--driver=bridge", "--label=" + networkLabel,
		"--opt=com.docker.network.bridge.enable_ip_masquerade=true"}
	if ipv6 {
		argv = append(argv, "--ipv6", "--subnet="+networkSubnet)
	}
	return append(argv, NetworkName)
}

// networks returns the IDs of the networks that match.
func networks(ctx context.Context, filter string) ([]string, error) {
	out, err := command.Output(ctx, "docker", "network", "ls", "--quiet", "--no-trunc", "--filter", filter)
	if err != nil {
		return nil, fmt.Errorf("listing docker networks: %w", err)
	}
	return strings.Fields(out), nil
}
