//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// blobStatus makes a node request the image's first blob from a cache, and returns the HTTP status.
func blobStatus(ctx context.Context, p *rig.Run, node *cluster.Node, endpoint string, img rig.Pushed) int {
	p.Helper()
	status, err := httpStatus(ctx, node, fmt.Sprintf("%s/v2/%s/blobs/%s", endpoint, img.Repository, img.Blobs[0]))
	p.Check(err)
	return status
}

// httpStatus makes a node request the URL, and returns the HTTP status. The node does not verify
// the server's certificate, which only the scenario tls tests.
func httpStatus(ctx context.Context, node *cluster.Node, url string) (int, error) {
	out, err := node.Exec(ctx, "curl", "--silent", "--show-error", "--insecure", "--max-time", "10",
		"--output", "/dev/null", "--write-out", "%{http_code}", url)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// awaitUpstreams waits until the caches reach their upstreams. On a node that has just started, a
// ready cache might not reach its upstream yet: without kube-proxy's rules a DNS lookup fails, and
// the failure is cached for five seconds. Meanwhile pulls go directly to the upstream.
//
// A cache answers 404 for a digest that its upstream does not have, and 502, 503 or 504 if the
// upstream does not answer.
func awaitUpstreams(ctx context.Context, p *rig.Run, hosts ...string) {
	p.Helper()
	endpoints := p.Endpoints(ctx)
	for _, host := range hosts {
		url := endpoints[host] + "/v2/e2e/nothing/manifests/sha256:" + strings.Repeat("0", 64)
		p.Await(ctx, "the cache of "+host+" reaches its upstream", 30*time.Second, func(ctx context.Context) (bool, string, error) {
			status, err := httpStatus(ctx, p.Worker(0), url)
			return err == nil && status == http.StatusNotFound, fmt.Sprintf("HTTP status %d (%v)", status, err), nil
		})
	}
}
