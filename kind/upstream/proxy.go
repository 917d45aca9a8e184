package upstream

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/testcontainers/testcontainers-go"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// ProxyPort is the port of a Proxy.
const ProxyPort = 3128

// Proxy is an HTTP proxy beside the upstreams. It forwards requests for http:// URLs and opens
// tunnels for CONNECT. Its log has the client and the target (accesslog.Record.Host).
type Proxy struct{ instance }

// StartProxy is Start for a proxy. It ignores CA and Credentials.
func StartProxy(ctx context.Context, o Options) (*Proxy, error) {
	if err := o.validateContainer(); err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
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
		prefix: o.Prefix, label: proxyLabel, host: o.Host, network: o.Network, image: o.Image,
		fingerprint: fingerprint("proxy", o.Host, o.Network, o.Image.Ref),
		ready:       answer{port: ProxyPort, path: accesslog.SettlePath, statuses: []int{http.StatusOK}},
	}
	l.request = func() (testcontainers.ContainerRequest, error) {
		labels := map[string]string{Label: o.Prefix, proxyLabel: o.Host, configLabel: l.fingerprint}
		wanted := l.container(o.containerName(), labels, ProxyPort)
		wanted.Cmd = []string{"proxy", "-address", ":" + strconv.Itoa(ProxyPort)}
		return wanted, nil
	}
	return l
}
