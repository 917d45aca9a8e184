package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	poll "k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

const (
	httpPort  = "80/tcp"
	httpsPort = "443/tcp"
	// startTimeout bounds the way from a created container to an answer on /v2/.
	startTimeout = time.Minute
	// userAgent makes our own requests known as such in the access log.
	userAgent = "registry-cache-testbed/1"
)

// Start brings up one upstream and returns when it answers. A running one that was made from the same options and
// answers is kept with everything that was pushed to it; otherwise it is replaced by an empty one. When starting fails,
// or ctx ends, the new container is removed.
func Start(ctx context.Context, o Options) (*Registry, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("start upstream: %w", err)
	}
	docker, err := connect()
	if err != nil {
		return nil, err
	}
	if running, err := reusable(ctx, docker, o); running != nil || err != nil {
		return running, err
	}
	if err := ensureImage(ctx, docker, o.Image); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", o.Host, err)
	}
	if err := run(ctx, docker, o); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", o.Host, err)
	}
	return find(ctx, docker, o.Prefix, o.Host)
}

// StartAll does what Start does for several upstreams at the same time and returns them in the order of the options. It
// waits for all of them; those that did start stay when another fails.
func StartAll(ctx context.Context, options ...Options) ([]*Registry, error) {
	started, errs := make([]*Registry, len(options)), make([]error, len(options))
	var running sync.WaitGroup
	for i, o := range options {
		running.Go(func() { started[i], errs[i] = Start(ctx, o) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return started, nil
}

// reusable returns the upstream when it can be kept, and removes what cannot.
func reusable(ctx context.Context, docker client.APIClient, o Options) (*Registry, error) {
	found, err := list(ctx, docker, o.Prefix, o.Host)
	if err != nil {
		return nil, err
	}
	for _, registry := range found {
		if registry.config == o.fingerprint() && registry.check(ctx) == nil {
			return registry, nil
		}
		if err := registry.remove(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func run(ctx context.Context, docker client.APIClient, o Options) error {
	if _, err := docker.NetworkInspect(ctx, o.Network, client.NetworkInspectOptions{}); err != nil {
		return fmt.Errorf("network %s: %w", o.Network, err)
	}
	pair, err := o.Authority.Server(o.Host, "localhost")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	setUp()
	started, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: request(o, pair.Certificate, pair.Key), Started: true,
	})
	if err == nil {
		return nil
	}
	if started == nil {
		return fmt.Errorf("start container %s: %w", o.containerName(), err)
	}
	bound, done := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer done()
	_, removed := docker.ContainerRemove(bound, started.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return errors.Join(fmt.Errorf("start container %s: %w", o.containerName(), err), removed)
}

// request describes the container. The key is readable by everybody inside it because Docker copies files as root, and
// the registry does not run as root.
func request(o Options, certificate, key []byte) testcontainers.ContainerRequest {
	return testcontainers.ContainerRequest{
		Image:          o.Image.Ref,
		Name:           o.containerName(),
		Labels:         o.labels(),
		ExposedPorts:   []string{httpPort, httpsPort},
		Networks:       []string{o.Network},
		NetworkAliases: map[string][]string{o.Network: {o.Host}},
		Files: []testcontainers.ContainerFile{
			{Reader: bytes.NewReader(certificate), ContainerFilePath: server.Certificate, FileMode: 0o444},
			{Reader: bytes.NewReader(key), ContainerFilePath: server.Key, FileMode: 0o444},
		},
		HostConfigModifier: func(host *container.HostConfig) { restrict(host, o.Network) },
		WaitingFor:         wait.ForNop(answers).WithStartupTimeout(startTimeout),
	}
}

// answers waits until the API version check is answered on the port on localhost. testcontainers-go's own HTTP strategy
// asks the gateway of the bridge instead when it believes that it runs in a container itself (core.DefaultGatewayIP,
// for example where /.dockerenv exists); nothing is published there.
func answers(ctx context.Context, target wait.StrategyTarget) error {
	port, err := target.MappedPort(ctx, httpPort)
	if err != nil {
		return fmt.Errorf("find the published port: %w", err)
	}
	var last error
	err = poll.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = get(ctx, localhost(port.Num()), "/v2/")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for /v2/: %w; last: %w", err, last)
	}
	return nil
}

// restrict publishes the ports on localhost only and takes every privilege away. The log driver is named because the
// access log is read back through the engine.
func restrict(host *container.HostConfig, name string) {
	published := []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1")}}
	host.NetworkMode = container.NetworkMode(name)
	host.PortBindings = network.PortMap{network.MustParsePort(httpPort): published, network.MustParsePort(httpsPort): published}
	host.CapDrop = []string{"ALL"}
	host.SecurityOpt = []string{"no-new-privileges"}
	host.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	host.LogConfig = container.LogConfig{Type: "json-file"}
}
