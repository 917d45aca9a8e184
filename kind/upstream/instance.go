package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

const (
	checkTimeout  = 5 * time.Second
	removeTimeout = 2 * time.Minute
)

// ErrNotRunning means that an upstream or a proxy does not exist or does not run.
var ErrNotRunning = errors.New("not running")

// instance is the container of an upstream or a proxy, as it was when it was looked up.
type instance struct {
	docker        client.APIClient
	id, name      string
	host, config  string
	state, status string
	ports         map[uint16]uint16 // container port → port on localhost
	addresses     []netip.Addr      // the container's addresses in its network
	log           *follower
}

// Host returns the host name that nodes and caches use.
func (i *instance) Host() string { return i.host }

// Container returns the name of the container.
func (i *instance) Container() string { return i.name }

// Running reports whether the container was running when it was looked up.
func (i *instance) Running() bool { return i.state == string(container.StateRunning) }

// Addresses returns the IPs of the container in its network, or none if it was not running.
func (i *instance) Addresses() []netip.Addr { return i.addresses }

// Status returns the status as the engine prints it, for example "Up 5 minutes".
func (i *instance) Status() string { return i.status }

func (i *instance) localAddress(port uint16) string { return localhost(i.ports[port]) }

func localhost(port uint16) string { return net.JoinHostPort("localhost", strconv.Itoa(int(port))) }

// check returns an error unless the container gives the expected answer.
func (i *instance) check(ctx context.Context, a answer) error {
	if !i.Running() {
		return fmt.Errorf("%s: %w", i.host, ErrNotRunning)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return get(ctx, i.localAddress(a.port), a.path)
}

// answer describes the request that a ready container answers with 200.
type answer struct {
	port uint16
	path string
}

func get(ctx context.Context, address, pathAndQuery string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+pathAndQuery, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", userAgent)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s from %s: status %s", pathAndQuery, address, response.Status)
	}
	return nil
}

// Remove removes the container and its content. A missing container is not an error.
func (i *instance) Remove(ctx context.Context) error {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	i.log.end()
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	_, err := i.docker.ContainerRemove(ctx, i.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove container %s: %w", i.name, err)
	}
	return nil
}

// instances returns a testbed's containers with the label, sorted by host. "" matches any value.
func instances(ctx context.Context, docker client.APIClient, prefix, label, value string) ([]instance, error) {
	if value != "" {
		label += "=" + value
	}
	filter := make(client.Filters).Add("label", Label+"="+prefix, label)
	containers, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		return nil, fmt.Errorf("list upstreams of testbed %s: %w", prefix, err)
	}
	found := []instance{}
	for _, summary := range containers.Items {
		found = append(found, fromSummary(docker, summary))
	}
	slices.SortFunc(found, func(a, b instance) int { return strings.Compare(a.host, b.host) })
	return found, nil
}

func fromSummary(docker client.APIClient, summary container.Summary) instance {
	found := instance{
		docker: docker, id: summary.ID, name: strings.TrimPrefix(strings.Join(summary.Names, ","), "/"),
		host: summary.Labels[hostLabel] + summary.Labels[proxyLabel], config: summary.Labels[configLabel],
		state: string(summary.State), status: summary.Status, ports: map[uint16]uint16{}, log: &follower{},
	}
	for _, port := range summary.Ports {
		if port.PublicPort != 0 {
			found.ports[port.PrivatePort] = port.PublicPort
		}
	}
	if summary.NetworkSettings != nil {
		for _, network := range summary.NetworkSettings.Networks { // exactly one, see restrict
			for _, address := range []netip.Addr{network.IPAddress, network.GlobalIPv6Address} {
				if address.IsValid() {
					found.addresses = append(found.addresses, address)
				}
			}
		}
	}
	return found
}
