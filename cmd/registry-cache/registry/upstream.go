package registry

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// upstreamRequests is the one metric that is ours. distribution has none of its upstream: it answers 404, as for an image
// that does not exist, when it cannot ask for a tag that it has not cached.
var upstreamRequests = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "registry_proxy_upstream_requests_total",
	Help: "The number of HTTP requests to the upstream, to its token server and to where it redirects, by the code of the answer; " +
		"code is error for a request without an answer, and canceled for one that the client gave up",
}, []string{"code"})

// useUpstreamTransport makes distribution ask its upstream by a transport that trusts authorities and counts answers.
// distribution takes http.DefaultTransport, so it is replaced: once per process.
var useUpstreamTransport = sync.OnceValue(func() error {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return errors.New("the default HTTP transport has been replaced")
	}
	if err := trustAuthorities(transport); err != nil {
		return err
	}
	http.DefaultTransport = counted{transport}
	return nil
})

// counted counts the answers that next gets.
type counted struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	switch {
	case err == nil:
		upstreamRequests.WithLabelValues(strconv.Itoa(response.StatusCode)).Inc()
	case errors.Is(err, context.Canceled):
		upstreamRequests.WithLabelValues("canceled").Inc()
	default:
		upstreamRequests.WithLabelValues("error").Inc()
	}
	return response, err
}
