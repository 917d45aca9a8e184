package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

const (
	checkTimeout  = 5 * time.Second
	removeTimeout = 30 * time.Second
)

// Registry is one upstream of a testbed.
type Registry struct {
	docker        client.APIClient
	id, name      string
	host, config  string
	state, status string
	ports         map[uint16]uint16 // in the container → on localhost
}

// ErrNotRunning says that an upstream is not there, or does not run.
var ErrNotRunning = errors.New("upstream registry is not running")

// Find returns the running upstream of a testbed that has the host name. The error is an ErrNotRunning when there is
// none.
func Find(ctx context.Context, prefix, host string) (*Registry, error) {
	docker, err := connect()
	if err != nil {
		return nil, err
	}
	return find(ctx, docker, prefix, host)
}

// List returns the upstreams of a testbed, ordered by host name, also those that do not run.
func List(ctx context.Context, prefix string) ([]*Registry, error) {
	docker, err := connect()
	if err != nil {
		return nil, err
	}
	return list(ctx, docker, prefix, "")
}

// Remove removes all upstreams of a testbed with what was pushed to them. That there are none is no error.
func Remove(ctx context.Context, prefix string) error {
	found, err := List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, registry := range found {
		err = errors.Join(err, registry.remove(ctx))
	}
	return err
}

// Host is the name that nodes and caches reach the upstream by.
func (r *Registry) Host() string { return r.host }

// URL is the address for caches, for example http://alpha.upstream.test.
func (r *Registry) URL() string { return "http://" + r.host }

// Container is the name of the container.
func (r *Registry) Container() string { return r.name }

// Running says whether the container ran when the Registry was looked up.
func (r *Registry) Running() bool { return r.state == string(container.StateRunning) }

// Status is the engine's own words, for example "Up 5 minutes".
func (r *Registry) Status() string { return r.status }

// Reference is the name that a pod on a node gives to an image here.
func (r *Registry) Reference(repository, tag string) string {
	return fmt.Sprintf("%s/%s:%s", r.host, repository, tag)
}

// Push stores an image and returns its digest. It goes through a port on localhost; the access log knows the requests
// as AskerHarness.
func (r *Registry) Push(ctx context.Context, repository, tag string, img v1.Image) (v1.Hash, error) {
	ref, err := name.NewTag(r.localAddress(80)+"/"+repository+":"+tag, name.Insecure, name.StrictValidation)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("push to %s: %w", r.host, err)
	}
	if err := remote.Write(ref, img, remote.WithContext(ctx)); err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", r.Reference(repository, tag), err)
	}
	return img.Digest()
}

// LocalHTTPS is the address on this machine that the HTTPS port is published on; the certificate is also valid for
// localhost.
func (r *Registry) LocalHTTPS() string { return r.localAddress(443) }

func (r *Registry) localAddress(port uint16) string {
	return localhost(r.ports[port])
}

func localhost(port uint16) string { return net.JoinHostPort("localhost", strconv.Itoa(int(port))) }

// check says whether the upstream answers its API version check.
func (r *Registry) check(ctx context.Context) error {
	if !r.Running() {
		return fmt.Errorf("%s: %w", r.host, ErrNotRunning)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return get(ctx, r.localAddress(80), "/v2/")
}

// get asks a server for a path and expects 200.
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

func (r *Registry) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	_, err := r.docker.ContainerRemove(ctx, r.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove container %s: %w", r.name, err)
	}
	return nil
}

func find(ctx context.Context, docker client.APIClient, prefix, host string) (*Registry, error) {
	found, err := list(ctx, docker, prefix, host)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(found, (*Registry).Running); i >= 0 {
		return found[i], nil
	}
	return nil, fmt.Errorf("testbed %s, host %s: %w", prefix, host, ErrNotRunning)
}

// list returns the upstreams of a testbed; host may be empty.
func list(ctx context.Context, docker client.APIClient, prefix, host string) ([]*Registry, error) {
	filter := make(client.Filters).Add("label", Label+"="+prefix, hostLabel)
	if host != "" {
		filter.Add("label", hostLabel+"="+host)
	}
	containers, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		return nil, fmt.Errorf("list upstreams of testbed %s: %w", prefix, err)
	}
	found := []*Registry{}
	for _, summary := range containers.Items {
		found = append(found, fromSummary(docker, summary))
	}
	slices.SortFunc(found, func(a, b *Registry) int { return strings.Compare(a.host, b.host) })
	return found, nil
}

func fromSummary(docker client.APIClient, summary container.Summary) *Registry {
	registry := &Registry{
		docker: docker, id: summary.ID, name: strings.TrimPrefix(strings.Join(summary.Names, ","), "/"),
		host: summary.Labels[hostLabel], config: summary.Labels[configLabel],
		state: string(summary.State), status: summary.Status, ports: map[uint16]uint16{},
	}
	for _, port := range summary.Ports {
		if port.PublicPort != 0 {
			registry.ports[port.PrivatePort] = port.PublicPort
		}
	}
	return registry
}
