package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// ReplicaHeader marks a request of a replica, which is answered with what is stored only.
const ReplicaHeader = "X-Registry-Cache-Peer"

const (
	// patience bounds the wait for a header, from all replicas together, and for each half of a body.
	patience = 500 * time.Millisecond
	// whole bounds an answer. What takes longer comes from the upstream.
	whole = time.Second
	// resting is how long a replica that failed is not asked, and how long addresses are kept.
	resting = 10 * time.Second
)

// ReplicaOptions say where the replicas are.
type ReplicaOptions struct {
	Address     string           // <host>:<port>. The host resolves to the addresses of all replicas.
	Namespace   string           // the name of the upstream, or empty
	Certificate *tls.Certificate // what all replicas serve with, or nil for HTTP
	// Lookup, Own and Dial may be nil; tests replace them.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Own    func() ([]net.Addr, error)
	Dial   Dial
}

// Replicas are the other replicas of a cache: an upstream that is asked first, with short bounds.
// What it sends counts only after its digest was checked. Get may be called at the same time.
type Replicas struct {
	options  ReplicaOptions
	root     url.URL // without an address
	http     *http.Client
	failures *failures

	mu        sync.Mutex
	addresses []string // <IP>:<port> of the others
	looked    time.Time
}

// NewReplicas returns the replicas. It sends nothing yet.
func NewReplicas(o ReplicaOptions) *Replicas {
	if o.Lookup == nil {
		o.Lookup, o.Own = net.DefaultResolver.LookupHost, net.InterfaceAddrs
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: patience}).DialContext
	}
	transport := &http.Transport{
		DialContext: o.Dial, TLSHandshakeTimeout: patience,
		DisableCompression: true, IdleConnTimeout: resting,
	}
	failed, _ := lru.New[string, failure](mostFailures) // fails for a size of 0
	r := &Replicas{options: o, http: &http.Client{Transport: transport}, failures: &failures{one: failed}}
	r.root = url.URL{Scheme: "http", Path: "/"}
	if o.Namespace != "" { // the address may belong to another cache by now
		r.root.RawQuery = url.Values{"ns": {o.Namespace}}.Encode()
	}
	if o.Certificate != nil {
		r.root.Scheme = "https"
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
	return r
}

// ErrUnused is returned by a use that does not need an answer, whatever it is.
var ErrUnused = errors.New("the answer of the replica is not used")

// Get lets use read the first answer that a replica has for a path below the repository, and
// reports whether use has accepted one. A replica whose answer use does not accept rests. ctx, and
// a second, bound all of it.
func (r *Replicas) Get(ctx context.Context, repository, path string, header http.Header, use func(*http.Response) error) bool {
	if r == nil {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, whole)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	patient := time.AfterFunc(patience, func() { cancel(ErrLate) })
	defer patient.Stop()
	for _, address := range r.others(ctx) {
		if ctx.Err() != nil {
			return false // this one is not asked, and has not failed
		}
		request := &http.Request{URL: r.root.JoinPath("v2", repository, path), Header: http.Header{ReplicaHeader: {"1"}}}
		request.URL.Host = address
		maps.Copy(request.Header, header)
		response, err := r.http.Do(request.WithContext(ctx))
		if err != nil {
			r.failures.add(address, &AwayError{RetryAfter: resting})
			continue
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
			continue
		}
		patient.Stop()
		body := &pacedBody{ReadCloser: response.Body, cancel: cancel, least: max(response.ContentLength/2, 1), period: patience, left: patience}
		response.Body = body
		err = use(response)
		late := errors.Is(ctx.Err(), context.DeadlineExceeded) || ctx.Err() != nil && body.got >= slowest
		_ = response.Body.Close()
		if err == nil {
			metrics.Peer.Inc()
		} else if !late && !errors.Is(err, ErrUnused) {
			r.failures.add(address, &AwayError{RetryAfter: resting})
		}
		return err == nil
	}
	return false
}

// others returns the addresses of replicas that have not failed lately. One caller at a time looks
// them up, and finishes that also if its client leaves. The others use what is known.
func (r *Replicas) others(ctx context.Context) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) > resting {
		r.looked = time.Now()
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		host, port, _ := net.SplitHostPort(r.options.Address)
		found, _ := r.options.Lookup(ctx, host) // without addresses the upstream is asked
		own, _ := r.options.Own()
		r.mu.Lock()
		r.addresses = nil
		for _, ip := range found {
			if !slices.ContainsFunc(own, func(a net.Addr) bool { return strings.HasPrefix(a.String(), ip+"/") }) {
				r.addresses = append(r.addresses, net.JoinHostPort(ip, port))
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(r.addresses), func(address string) bool { return r.failures.check(address) != nil })
}
