package upstream

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	poll "k8s.io/apimachinery/pkg/util/wait"
)

// container returns the part of the request that all containers share: they have no privileges, can
// be reached by host name in the network and by port on localhost, and are ready when they answer.
func (l launch) container(name string, labels map[string]string, ports ...uint16) testcontainers.ContainerRequest {
	exposed := []string{}
	for _, port := range ports {
		exposed = append(exposed, tcp(port))
	}
	return testcontainers.ContainerRequest{
		Image:              l.image.Ref,
		Name:               name,
		Labels:             labels,
		ExposedPorts:       exposed,
		Networks:           []string{l.network},
		NetworkAliases:     map[string][]string{l.network: {l.host}},
		HostConfigModifier: func(host *container.HostConfig) { restrict(host, l.network, exposed) },
		WaitingFor:         wait.ForNop(l.ready.wait).WithStartupTimeout(startTimeout),
	}
}

// wait waits until the container answers on its port on localhost. It replaces testcontainers-go's
// HTTP strategy, which asks the gateway of the bridge if it detects that it runs in a container
// (core.DefaultGatewayIP, for example if /.dockerenv exists). Nothing is published there.
func (a answer) wait(ctx context.Context, target wait.StrategyTarget) error {
	port, err := target.MappedPort(ctx, tcp(a.port))
	if err != nil {
		return fmt.Errorf("find the published port: %w", err)
	}
	var last error
	err = poll.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = get(ctx, localhost(port.Num()), a.path, a.statuses...)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w; last: %w", a.path, err, last)
	}
	return nil
}

// restrict publishes the ports on localhost only and drops all privileges. It names the log driver
// because the access log is read through the engine.
func restrict(host *container.HostConfig, name string, ports []string) {
	host.NetworkMode = container.NetworkMode(name)
	host.PortBindings = network.PortMap{}
	for _, port := range ports {
		host.PortBindings[network.MustParsePort(port)] = []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1")}}
	}
	host.CapDrop = []string{"ALL"}
	host.SecurityOpt = []string{"no-new-privileges"}
	host.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	host.LogConfig = container.LogConfig{Type: "json-file"}
}
