package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// pingTimeout is how long the upstream has to answer a ping.
	pingTimeout = 5 * time.Second
	// failureLasts is how long nobody asks again after a ping without an answer: distribution sends one ping after the other,
	// and each of a queue of pulls would wait for its own.
	failureLasts = 5 * time.Second
)

// pinger bounds distribution's pings, GET <remoteURL>/v2/, by which it asks how its upstream authenticates. It sends them
// without a limit, and while one waits all others do.
//
// The first is part of its start, and ends it if there is no answer (distribution#4038): a cache would end again and again
// just when its upstream is out, or the network of a new node not ready, and nobody would serve what is stored. It gets an
// answer without a challenge instead. Later ones get the error, with which distribution turns to what is stored.
type pinger struct {
	next   http.RoundTripper
	remote *url.URL

	mu sync.Mutex
	// started says that the start is over.
	started bool
	// unknown says that the start did not learn how the upstream authenticates.
	unknown bool
	// failed is when a ping failed for the last time, and failure how.
	failed  time.Time
	failure error
}

// RoundTrip implements http.RoundTripper. Other requests than pings go to next.
func (p *pinger) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.URL.Host != p.remote.Host || !strings.HasSuffix(request.URL.Path, "/v2/") {
		return p.next.RoundTrip(request)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started && p.failure != nil && time.Since(p.failed) < failureLasts {
		return nil, p.failure
	}
	var answer pingAnswer
	answer, p.failure = ping(request.Context(), p.next, request.URL, pingTimeout)
	if p.failure != nil {
		p.failed = time.Now()
		if p.started {
			return nil, p.failure
		}
		logrus.Warnf("starting all the same, to serve what is stored: %v", p.failure)
		answer = pingAnswer{status: http.StatusOK, header: http.Header{}}
	}
	if !p.started {
		p.unknown = p.failure != nil || !answer.tells()
	}
	return answer.response(request), nil
}

// start says that the start is over, and whether it did not learn how the upstream authenticates.
func (p *pinger) start() (unknown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = true
	return p.unknown
}

// pingAnswer is an upstream's answer to a ping.
type pingAnswer struct {
	status int
	header http.Header
}

// ping asks the upstream, which has so much time.
func ping(ctx context.Context, transport http.RoundTripper, endpoint *url.URL, timeout time.Duration) (pingAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint.String(), http.NoBody)
	if err != nil {
		return pingAnswer{}, err
	}
	client := http.Client{Transport: transport, Timeout: timeout}
	response, err := client.Do(request)
	if err != nil {
		return pingAnswer{}, fmt.Errorf("the upstream does not answer: %w", err)
	}
	_ = response.Body.Close()
	return pingAnswer{response.StatusCode, response.Header}, nil
}

// tells says whether a registry has answered (distribution-spec, Determining Support): another status is that of a proxy or of
// a registry that is out of order.
func (a pingAnswer) tells() bool {
	return a.status == http.StatusOK || a.status == http.StatusUnauthorized
}

// wantsToken says whether distribution would get tokens for its credentials where the answer says.
func (a pingAnswer) wantsToken() bool {
	if a.status != http.StatusUnauthorized {
		return false
	}
	for _, challenge := range a.header.Values("WWW-Authenticate") {
		scheme, parameters, _ := strings.Cut(challenge, " ")
		if strings.EqualFold(scheme, "Bearer") && strings.Contains(strings.ToLower(parameters), "realm=") {
			return true
		}
	}
	return false
}

// response is the answer without its body.
func (a pingAnswer) response(request *http.Request) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: request.Proto, ProtoMajor: request.ProtoMajor, ProtoMinor: request.ProtoMinor,
		Header: a.header, Body: http.NoBody, Request: request,
	}
}
