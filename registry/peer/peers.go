package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/fetch"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// Header marks a request of a replica.
const Header = "X-Registry-Cache-Peer"

const (
	// patience bounds the wait for the header of an answer, from all replicas together, and then each
	// read of the body.
	patience = 500 * time.Millisecond
	// resting is how long a replica that failed is not asked again, and how long addresses are kept.
	resting = 10 * time.Second
)

// Peers asks replicas first, and then the upstream. Its methods may be called at the same time.
type Peers struct {
	fetch.Upstream
	options Options
	http    *http.Client

	mu        sync.Mutex
	addresses []string // <IP>:<port> of the others
	looked    time.Time
	failed    map[string]time.Time
}

// Options say where the replicas are.
type Options struct {
	// Address is <host>:<port>. The host resolves to the addresses of all replicas.
	Address string
	// Namespace is the name of the upstream, or empty.
	Namespace string
	// Certificate is what all replicas serve with, or nil for HTTP.
	Certificate *tls.Certificate
	// Lookup and Own may be nil; tests replace them.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Own    func() ([]net.Addr, error)
}

// New returns an upstream that asks the replicas before next. It sends nothing yet.
func New(next fetch.Upstream, o Options) *Peers {
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	if o.Own == nil {
		o.Own = net.InterfaceAddrs
	}
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: patience}).DialContext, ResponseHeaderTimeout: patience,
		TLSHandshakeTimeout: patience, DisableCompression: true, IdleConnTimeout: resting,
	}
	if o.Certificate != nil {
		transport.TLSClientConfig = &tls.Config{
			MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // VerifyConnection compares
			VerifyConnection: func(state tls.ConnectionState) error {
				if !state.PeerCertificates[0].Equal(o.Certificate.Leaf) {
					return errors.New("the replica has another certificate")
				}
				return nil
			},
		}
	}
	return &Peers{Upstream: next, options: o, http: &http.Client{Transport: transport}, failed: map[string]time.Time{}}
}

type fromReplica struct{}

// Answering returns the context of a request that may come from a replica: it is answered with what
// this replica has, and causes no other request.
func Answering(ctx context.Context, header http.Header) context.Context {
	if header.Get(Header) == "" {
		return ctx
	}
	return context.WithValue(ctx, fromReplica{}, true)
}

// ErrNotHere answers a replica, or says that no replica has an object.
var ErrNotHere = errors.New("the replica does not have it")

// Away implements fetch.Upstream and does not wait. While there are replicas to ask, or while it is
// not known whether there are, a request can succeed.
func (p *Peers) Away(ctx context.Context, repository, path string) error {
	if ctx.Value(fromReplica{}) != nil {
		return ErrNotHere
	}
	p.mu.Lock()
	canSucceed := p.stale() || len(p.fit()) > 0
	p.mu.Unlock()
	if canSucceed {
		return nil
	}
	return p.Upstream.Away(ctx, repository, path)
}

// Do implements fetch.Upstream. Replicas are asked for content by digest only, because the upstream
// decides to what a tag refers.
func (p *Peers) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	if strings.Contains(path, ":") && method == http.MethodGet {
		if response := p.ask(ctx, method, repository, path, header); response != nil {
			return response, nil
		}
	}
	return p.Upstream.Do(ctx, method, repository, path, header)
}

// Only returns the replicas without the upstream.
func (p *Peers) Only() fetch.Upstream { return only{p} }

type only struct{ *Peers }

// Do implements fetch.Upstream.
func (o only) Do(ctx context.Context, method, repository, path string, header http.Header) (*http.Response, error) {
	if ctx.Value(fromReplica{}) == nil {
		if response := o.ask(ctx, method, repository, path, header); response != nil {
			return response, nil
		}
	}
	return nil, ErrNotHere
}

// ask returns the answer of the first replica that has the object, or nil when none answers within
// patience.
func (p *Peers) ask(client context.Context, method, repository, path string, header http.Header) *http.Response {
	ctx, cancel := context.WithCancel(client)
	patient := time.AfterFunc(patience, cancel)
	for _, address := range p.others(ctx) {
		if ctx.Err() != nil {
			break
		}
		request, err := http.NewRequestWithContext(ctx, method, p.url(address, repository, path), http.NoBody)
		if err != nil {
			break
		}
		maps.Copy(request.Header, header)
		request.Header.Set(Header, "1")
		response, err := p.http.Do(request)
		if err != nil && client.Err() != nil {
			break
		}
		if err != nil {
			p.rest(address)
			continue
		}
		found := response.StatusCode == http.StatusOK || response.StatusCode == http.StatusPartialContent
		if found && patient.Stop() {
			metrics.Peer.Inc()
			response.Body = &body{response.Body, cancel, func() { p.rest(address) }}
			return response
		}
		_ = response.Body.Close()
	}
	cancel()
	return nil
}

// url says which upstream is meant, because the address may belong to another cache by now.
func (p *Peers) url(address, repository, path string) string {
	target := url.URL{Scheme: "http", Host: address, Path: "/v2/" + repository + "/" + path}
	if p.options.Certificate != nil {
		target.Scheme = "https"
	}
	if p.options.Namespace != "" {
		target.RawQuery = url.Values{"ns": {p.options.Namespace}}.Encode()
	}
	return target.String()
}

// others returns the addresses of replicas that have not failed lately. One caller at a time looks
// them up, and finishes that also if its client leaves. The others use what is known.
func (p *Peers) others(ctx context.Context) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale() {
		p.looked = time.Now()
		p.mu.Unlock()
		found := p.lookUp(ctx)
		p.mu.Lock()
		p.addresses = found
		maps.DeleteFunc(p.failed, func(_ string, at time.Time) bool { return time.Since(at) > resting })
	}
	return p.fit()
}

func (p *Peers) stale() bool { return time.Since(p.looked) > resting }

func (p *Peers) fit() (addresses []string) {
	for _, address := range p.addresses {
		if time.Since(p.failed[address]) > resting {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

func (p *Peers) lookUp(ctx context.Context) (addresses []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	host, port, _ := net.SplitHostPort(p.options.Address)
	found, _ := p.options.Lookup(ctx, host) // without addresses the upstream is asked
	own, _ := p.options.Own()
	for _, ip := range found {
		if !slices.ContainsFunc(own, func(a net.Addr) bool { return strings.HasPrefix(a.String(), ip+"/") }) {
			addresses = append(addresses, net.JoinHostPort(ip, port))
		}
	}
	return addresses
}

// rest records that a replica has failed.
func (p *Peers) rest(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[address] = time.Now()
}

// body ends with an error when the next part takes longer than patience.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
	failed func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	defer time.AfterFunc(patience, b.cancel).Stop()
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed()
	}
	return n, err
}

// Wrong implements fetch.Replica.
func (b *body) Wrong() { b.failed() }

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
