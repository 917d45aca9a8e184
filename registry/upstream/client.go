package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

const (
	// Patience is how long a client of the cache waits for the upstream and its token server together.
	Patience = 1500 * time.Millisecond
	// longest is how long they may take: what is later than Patience is there for the next client.
	longest = 30 * time.Second
	// idle is how long the next byte of a body may take.
	idle = 10 * time.Second
	// redirects is how many redirects are followed, as in net/http.
	redirects = 10
)

// Options say which upstream there is. Username and Password may be empty.
type Options struct {
	URL                *url.URL // <scheme>://<host>[:<port>]
	Username, Password string
	Roots              *x509.CertPool
}

// Client asks one upstream. Its methods may be called at the same time.
type Client struct {
	url      *url.URL
	http     *http.Client
	breakers *breakers
}

// New returns a client. It sends nothing yet. At the end of ctx it closes idle connections and
// probes no more.
func New(ctx context.Context, o Options) (*Client, error) {
	options := []name.Option{}
	if o.URL.Scheme == "http" {
		options = append(options, name.Insecure)
	}
	registry, err := name.NewRegistry(o.URL.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", o.URL.Redacted(), err)
	}
	auth := authn.Anonymous
	if o.Username != "" {
		auth = &authn.Basic{Username: o.Username, Password: o.Password}
	}
	c := &Client{url: o.URL, breakers: newBreakers(ctx)}
	c.breakers.probe = c.probe
	transport := newTransport(o.Roots)
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	tokens := newTokens(counted{transport}, o.URL.Scheme, registry, auth)
	c.http = &http.Client{Transport: tokens, CheckRedirect: withoutCredentials}
	return c, nil
}

// withoutCredentials drops the credentials when a redirect leaves the host, also for a subdomain: a
// store with signed URLs refuses them.
func withoutCredentials(request *http.Request, earlier []*http.Request) error {
	if len(earlier) >= redirects {
		return fmt.Errorf("more than %d redirects", redirects)
	}
	if request.URL.Host != earlier[0].URL.Host {
		request.Header.Del("Authorization")
	}
	return nil
}

// Away returns an *AwayError while the upstream, the repository or the path below it is away.
func (c *Client) Away(_ context.Context, repository, path string) error {
	return c.breakers.check(repository, path)
}

// Do sends a request for a path below the repository, such as "manifests/v1", and returns the
// answer when its header is there, after 30 seconds at most. An answer of the classes 2xx to 4xx is
// no error, except 408 and 429. If the token server refuses a token, the error is a *StatusError
// with 401 or 403. While the upstream is away the error is an *AwayError at once. The body must be
// closed; it ends with an error when the next byte takes longer than 10 seconds.
func (c *Client) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	if err := c.breakers.check(repository, path); err != nil {
		return nil, err
	}
	late := func(request *http.Request, cancel context.CancelCauseFunc) {
		c.breakers.isLate(request, cancel, repository, path, header)
	}
	response, err := c.send(ctx, method, repository, path, header, late)
	if errors.Is(err, errRecovered) {
		response, err = c.send(ctx, method, repository, path, header, late)
	}
	if err != nil && context.Cause(ctx) != nil {
		return nil, err // the client gave up, which says nothing about the upstream
	}
	err = failure(response, err)
	if refused, ok := errors.AsType[*StatusError](err); ok && !refused.Away() {
		return nil, err // by the token server
	}
	if err != nil {
		c.breakers.failed(repository, path, header, err)
		return nil, err
	}
	c.breakers.succeeded(repository, path)
	return response, nil
}

// send gives up when the header is not there after longest. It calls late after Patience.
func (c *Client) send(
	ctx context.Context, method, repository, path string, header http.Header, late func(*http.Request, context.CancelCauseFunc),
) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, repositoryKey{}, repository))
	request, err := http.NewRequestWithContext(ctx, method, c.url.JoinPath("v2", repository, path).String(), http.NoBody)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	maps.Copy(request.Header, header)
	seen := make(chan struct{})
	waiting := time.AfterFunc(Patience, func() {
		defer close(seen)
		late(request, cancel)
	})
	ended := time.AfterFunc(longest, func() { cancel(ErrLate) })
	response, err := c.http.Do(request)
	if !waiting.Stop() {
		<-seen
	}
	c.breakers.answered(request)
	if !ended.Stop() && err == nil {
		err = errors.Join(ErrLate, response.Body.Close())
	}
	if err = withoutQuery(err); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		cancel(nil)
		return nil, err
	}
	response.Body = &idleBody{response.Body, cancel}
	return response, nil
}

// probe asks for the header of a path below the repository, or without a path for the root of the
// API, which every registry answers (distribution-spec, end-1).
func (c *Client) probe(ctx context.Context, repository, path string, accept http.Header) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, ErrLate)
	defer cancel()
	method := http.MethodHead
	if path == "" {
		method, path = http.MethodGet, "/"
	}
	response, err := c.send(ctx, method, repository, path, accept, func(*http.Request, context.CancelCauseFunc) {})
	err = failure(response, err)
	if refused, ok := errors.AsType[*StatusError](err); ok && !refused.Away() {
		return nil // the token server answers
	}
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// withoutQuery drops the URL from an error of net/http, because that of a redirect can be signed.
func withoutQuery(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		if target, invalid := url.Parse(failed.URL); invalid == nil {
			return fmt.Errorf("%s %s: %w", failed.Op, target.Host, failed.Err)
		}
		return failed.Err
	}
	return err
}
