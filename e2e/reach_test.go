//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// reachTimeout is what a cache that started before its node's network may need: it asks again five seconds after a failure.
	reachTimeout = 30 * time.Second
	// nowhere is a manifest that no upstream has.
	nowhere = "/v2/e2e/nothing/manifests/sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

// AwaitUpstreams waits until the caches reach their upstreams. On a machine that starts anew they are ready before that: without
// kube-proxy's rules a name is looked up in vain, and a failure counts for five seconds. Nodes pull past them meanwhile.
//
// A cache answers 404 for what its upstream does not have, and 500 if that cannot be known; for a tag it would be 404 in both cases.
func (p *scenarioRun) AwaitUpstreams(ctx context.Context, hosts ...string) {
	p.Helper()
	endpoints := p.Endpoints(ctx)
	for _, host := range hosts {
		p.Await(ctx, "the cache of "+host+" reaches it", reachTimeout, func(ctx context.Context) (bool, string, error) {
			out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
				"--write-out", "%{http_code}", endpoints[host]+nowhere)
			status := strings.TrimSpace(out)
			return err == nil && status == strconv.Itoa(http.StatusNotFound), fmt.Sprintf("HTTP status %s (%v)", status, err), nil
		})
	}
}
