package upstream

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
	poll "k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/image"
)

// container returns the settings that all containers share. Containers have no privileges, and are
// ready when they answer. Clients use the host name in the network, or a port on localhost.
func (l launch) container(ports ...uint16) testcontainers.ContainerRequest {
	exposed := []string{}
	for _, port := range ports {
		exposed = append(exposed, tcp(port))
	}
	return testcontainers.ContainerRequest{
		Image:              l.Image.Ref,
		Name:               l.containerName(),
		Labels:             map[string]string{Label: l.Prefix, l.label: l.Host, configLabel: l.config},
		ExposedPorts:       exposed,
		Networks:           []string{l.Network},
		NetworkAliases:     map[string][]string{l.Network: l.names()},
		HostConfigModifier: func(host *container.HostConfig) { restrict(host, l.Network, exposed) },
		WaitingFor:         wait.ForNop(l.ready.wait).WithStartupTimeout(startTimeout),
	}
}

// wait waits until the container answers on its port on localhost, in place of testcontainers-go's
// HTTP strategy. If this process seems to run in a container (/.dockerenv exists), that strategy
// asks the gateway of the bridge (core.DefaultGatewayIP), where no port is published.
func (a answer) wait(ctx context.Context, target wait.StrategyTarget) error {
	port, err := target.MappedPort(ctx, tcp(a.port))
	if err != nil {
		return fmt.Errorf("find the published port: %w", err)
	}
	var last error
	err = poll.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = get(ctx, localhost(port.Num()), a.path)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w; last: %w", a.path, err, last)
	}
	return nil
}

// restrict publishes the ports on localhost only and drops all privileges. It sets the log driver,
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

// setUp disables the log and the reaper container of testcontainers-go. The reaper's image cannot
// be pulled on a machine without access to a registry. Package upstream removes containers by
// label. testcontainers-go reads the environment variable only once.
var setUp = sync.OnceFunc(func() {
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	log.SetDefault(log.NewNoopLogger())
})

func connect() (client.APIClient, error) {
	setUp()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("connect to the Docker Engine: %w", err)
	}
	return provider.Client(), nil
}

// loading prevents upstreams that start at the same time from loading their image twice.
var loading sync.Mutex

// ensureImage does nothing if the engine has the image. Otherwise it loads the image and removes
// older versions of it.
func ensureImage(ctx context.Context, docker client.APIClient, built image.Built) error {
	loading.Lock()
	defer loading.Unlock()
	if _, err := docker.ImageInspect(ctx, built.Ref); err == nil {
		return nil
	} else if !errdefs.IsNotFound(err) {
		return fmt.Errorf("look for image %s: %w", built.Ref, err)
	}
	if err := image.LoadIntoEngine(ctx, built); err != nil {
		return err
	}
	removeOldImages(ctx, docker, built)
	return nil
}

// removeOldImages removes older versions of the image that are not in use, and ignores errors.
func removeOldImages(ctx context.Context, docker client.APIClient, built image.Built) {
	filter := make(client.Filters).Add("reference", image.Registry+"/"+built.Name)
	images, err := docker.ImageList(ctx, client.ImageListOptions{Filters: filter})
	if err != nil {
		return
	}
	for _, found := range images.Items {
		for _, ref := range found.RepoTags {
			if ref != built.Ref {
				_, _ = docker.ImageRemove(ctx, ref, client.ImageRemoveOptions{})
			}
		}
	}
}
