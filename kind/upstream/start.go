package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

// Ports of an upstream.
const httpPort, httpsPort = server.HTTP, server.HTTPS

// userAgent identifies the testbed's own requests in the access log.
const userAgent = "registry-cache-testbed/1"

// Start starts an upstream and waits until it answers. If an upstream with the same options runs
// and answers, Start keeps it with its content. Otherwise Start replaces the upstream with an empty
// one. If Start fails or ctx ends, it removes the new container.
func Start(ctx context.Context, o Options) (*Registry, error) {
	docker, err := connect()
	if err != nil {
		return nil, err
	}
	found, err := start(ctx, docker, o.launch())
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", o.Host, err)
	}
	return &Registry{instance: *found}, nil
}

// StartAll starts upstreams in parallel and returns them in the order of the options. If one cannot
// start, StartAll still waits for the others, which keep running.
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

type launch struct {
	Options
	label, config string // the label with the host, and the value of configLabel
	ready         answer
	request       func() (testcontainers.ContainerRequest, error)
}

// launch returns what is needed to start the container of an upstream.
func (o Options) launch() launch {
	l := launch{
		Options: o, label: hostLabel, config: o.fingerprint(),
		ready: answer{port: httpPort, path: "/v2/"},
	}
	l.request = func() (testcontainers.ContainerRequest, error) {
		pair, err := o.CA.Server(o.Host, append(o.names()[1:], "localhost")...)
		if err != nil {
			return testcontainers.ContainerRequest{}, err
		}
		return request(o, pair.Certificate, pair.Key), nil
	}
	return l
}

// start returns the running container if it can be kept, and otherwise a new one.
func start(ctx context.Context, docker client.APIClient, l launch) (*instance, error) {
	if kept, err := reusable(ctx, docker, l); kept != nil || err != nil {
		return kept, err
	}
	if err := ensureImage(ctx, docker, l.Image); err != nil {
		return nil, err
	}
	if err := l.run(ctx, docker); err != nil {
		return nil, err
	}
	return running(ctx, docker, l.Prefix, l.label, l.Host)
}

// reusable returns the container if it can be kept, and removes it otherwise.
func reusable(ctx context.Context, docker client.APIClient, l launch) (*instance, error) {
	found, err := instances(ctx, docker, l.Prefix, l.label, l.Host)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		if one.config == l.config && one.check(ctx, l.ready) == nil {
			return &one, nil
		}
		if err := one.Remove(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (l launch) run(ctx context.Context, docker client.APIClient) error {
	if _, err := docker.NetworkInspect(ctx, l.Network, client.NetworkInspectOptions{}); err != nil {
		return fmt.Errorf("network %s: %w", l.Network, err)
	}
	wanted, err := l.request()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	setUp()
	started, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: wanted, Started: true})
	if err == nil {
		return nil
	}
	if started == nil {
		return fmt.Errorf("start container %s: %w", wanted.Name, err)
	}
	bound, done := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer done()
	_, removed := docker.ContainerRemove(bound, started.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return errors.Join(fmt.Errorf("start container %s: %w", wanted.Name, err), removed)
}

// request returns the container request. Every user in the container can read the key, because
// Docker copies files as root and the registry does not run as root.
func request(o Options, certificate, key []byte) testcontainers.ContainerRequest {
	wanted := o.launch().container(httpPort, httpsPort)
	sites := sitesOf(o.Host)
	wanted.Cmd = []string{"serve", "-sibling", sites.Sibling, "-foreign", sites.Foreign}
	wanted.Files = []testcontainers.ContainerFile{
		{Reader: bytes.NewReader(certificate), ContainerFilePath: server.Certificate, FileMode: 0o444},
		{Reader: bytes.NewReader(key), ContainerFilePath: server.Key, FileMode: 0o444},
	}
	return wanted
}

func tcp(port uint16) string { return strconv.Itoa(int(port)) + "/tcp" }

// startTimeout bounds the time from creating a container to its first answer.
const startTimeout = time.Minute

// ProxyPort is the port of a Proxy.
const ProxyPort = server.ProxyPort

// Proxy is an HTTP proxy in the network of the upstreams. It forwards requests for http:// URLs and
// opens tunnels for CONNECT. Its log names the client and the target (accesslog.Record.Host).
type Proxy struct{ instance }

// StartProxy does for a proxy what Start does for an upstream. It ignores Options.CA.
func StartProxy(ctx context.Context, o Options) (*Proxy, error) {
	docker, err := connect()
	if err != nil {
		return nil, err
	}
	found, err := start(ctx, docker, o.proxyLaunch())
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", o.Host, err)
	}
	return &Proxy{instance: *found}, nil
}

// URL returns the proxy's address for its clients, for example http://proxy.upstream.test:3128.
func (p *Proxy) URL() string { return "http://" + p.host + ":" + strconv.Itoa(ProxyPort) }

func (o Options) proxyLaunch() launch {
	l := launch{
		Options: o, label: proxyLabel, config: fingerprint("proxy", o.Host, o.Network, o.Image.Ref),
		ready: answer{port: ProxyPort, path: accesslog.SettlePath},
	}
	l.request = func() (testcontainers.ContainerRequest, error) {
		wanted := l.container(ProxyPort)
		wanted.Cmd = []string{"proxy"}
		return wanted, nil
	}
	return l
}
