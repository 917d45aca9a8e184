package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/sirupsen/logrus"
)

const (
	// pingTimeout is how long the start waits for the upstream.
	pingTimeout = 5 * time.Second
	// askInterval is the pause after which an upstream is asked again that did not answer at the start.
	askInterval = 5 * time.Second
)

// ping lets distribution start while its upstream does not answer (distribution#4038). At its start it asks GET
// <remoteURL>/v2/, for as long as it takes, where tokens come from, and ends if it gets no answer: it would end again and again
// just when the upstream is out, or the network of a new node not ready, and nobody would serve what is cached. It gets an
// answer without a challenge instead.
type ping struct {
	next http.RoundTripper
	url  string
	// unanswered says that nobody knows how the upstream authenticates.
	unanswered atomic.Bool
}

// newPing returns the ping of a registry with this configuration.
func newPing(config *configuration.Configuration, next http.RoundTripper) (*ping, error) {
	endpoint, err := url.Parse(config.Proxy.RemoteURL + "/v2/")
	if err != nil {
		return nil, fmt.Errorf("proxy.remoteurl: %w", err)
	}
	return &ping{next: next, url: endpoint.String()}, nil
}

// RoundTrip implements http.RoundTripper. Other requests than the ping go to next.
func (p *ping) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.URL.String() != p.url {
		return p.next.RoundTrip(request)
	}
	status, header, err := askUpstream(request.Context(), p.next, p.url)
	if err != nil {
		p.unanswered.Store(true)
		logrus.Warnf("starting all the same, to serve what is cached: %v", err)
		status, header = http.StatusOK, http.Header{}
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: request.Proto, ProtoMajor: request.ProtoMajor, ProtoMinor: request.ProtoMinor,
		Header: header, Body: http.NoBody, Request: request,
	}, nil
}

// awaitTokens returns a channel that is closed when the upstream answers again and wants tokens. distribution learns at its
// start only where to get them: without that it would show nobody its credentials.
func (p *ping) awaitTokens(ctx context.Context) <-chan struct{} {
	wanted := make(chan struct{})
	go func() {
		ticker := time.NewTicker(askInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			_, header, err := askUpstream(ctx, p.next, p.url)
			if err != nil {
				continue
			}
			if wantsToken(header) {
				close(wanted)
			}
			return
		}
	}()
	return wanted
}

// askUpstream returns status and header of the upstream's answer. One that says that it is out of order, or asked too often, is
// none.
func askUpstream(ctx context.Context, transport http.RoundTripper, url string) (status int, header http.Header, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	client := http.Client{Transport: transport, Timeout: pingTimeout}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("the upstream does not answer: %w", err)
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		return 0, nil, fmt.Errorf("the upstream answers GET %s with %s", url, response.Status)
	}
	return response.StatusCode, response.Header, nil
}

func wantsToken(header http.Header) bool {
	for _, challenge := range header.Values("WWW-Authenticate") {
		if scheme, _, _ := strings.Cut(challenge, " "); strings.EqualFold(scheme, "Bearer") {
			return true
		}
	}
	return false
}
