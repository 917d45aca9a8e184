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

// ReplicaHeader marks a request from a replica. Only stored content may answer it.
const ReplicaHeader = "X-Registry-Cache-Peer"

const (
	// replicaPatience limits how long it takes until one of the replicas has sent the header of its
	// answer, and then how long each half of the body takes.
	replicaPatience = 500 * time.Millisecond
	// whole is the timeout of Get. When it expires, the caller goes on without the replicas.
	whole = time.Second
	// resting is how long a failed replica is not asked, and how long addresses are cached.
	resting = 10 * time.Second
)

// ReplicaOptions configure Replicas.
type ReplicaOptions struct {
	Address     string           // <host>:<port>. The host resolves to the addresses of all replicas.
	Namespace   string           // the upstream's name, or empty
	Certificate *tls.Certificate // the certificate of all replicas, or nil for HTTP
	// Lookup and Own are both nil or both set, and Dial may be nil. Only tests set them.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Own    func() ([]net.Addr, error)
	Dial   Dial
}

// Replicas are the other replicas of a cache. They are asked with short timeouts. The caller must
// verify digests. Get is safe for concurrent use.
type Replicas struct {
	options  ReplicaOptions
	root     url.URL // without an address
	http     *http.Client
	failures *failures

	mu        sync.Mutex
	addresses []string // <IP>:<port> of the other replicas
	looked    time.Time
}

// NewReplicas returns the replicas without sending a request.
func NewReplicas(o ReplicaOptions) *Replicas {
	if o.Lookup == nil {
		o.Lookup, o.Own = net.DefaultResolver.LookupHost, net.InterfaceAddrs
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: replicaPatience}).DialContext
	}
	transport := &http.Transport{
		DialContext: o.Dial, TLSHandshakeTimeout: replicaPatience,
		DisableCompression: true, IdleConnTimeout: resting,
	}
	failed, _ := lru.New[string, failure](mostFailures) // lru.New returns an error only for a size of 0
	r := &Replicas{options: o, http: &http.Client{Transport: transport}, failures: &failures{one: failed}}
	r.root = url.URL{Scheme: "http", Path: "/"}
	if o.Namespace != "" { // so that the cache of another upstream, which now has the address, refuses
		r.root.RawQuery = url.Values{"ns": {o.Namespace}}.Encode()
	}
	if o.Certificate != nil {
		r.root.Scheme = "https"
		transport.TLSClientConfig = &tls.Config{
			MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // VerifyConnection compares certificates
			VerifyConnection: func(state tls.ConnectionState) error {
				if !state.PeerCertificates[0].Equal(o.Certificate.Leaf) {
					return errors.New("the replica serves a different certificate")
				}
				return nil
			},
		}
	}
	return r
}

// ErrUnused is returned by the function use of Get if no answer can be used, as on a full volume.
var ErrUnused = errors.New("the caller does not use the replica's answer")

// Get requests a path below the repository from the replicas. It passes the first answer with
// status 200 to use, and reports whether use accepted it. After a failure or an error of use,
// except ErrUnused, a replica is not asked for ten seconds. Get takes at most a second.
func (r *Replicas) Get(ctx context.Context, repository, path string, header http.Header, use func(*http.Response) error) bool {
	if r == nil {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, whole)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	patient := time.AfterFunc(replicaPatience, func() { cancel(ErrLate) })
	defer patient.Stop()
	for _, address := range r.others(ctx) {
		if ctx.Err() != nil {
			return false // out of time, which is not a failure of this replica
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
		body := &pacedBody{ReadCloser: response.Body, cancel: cancel, least: max(response.ContentLength/2, 1), period: replicaPatience, left: replicaPatience}
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

// others returns the addresses of replicas that have not failed recently. One caller at a time
// looks them up, even if its client leaves. Meanwhile, other callers use the known addresses.
func (r *Replicas) others(ctx context.Context) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) > resting {
		r.looked = time.Now()
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replicaPatience)
		defer cancel()
		host, port, _ := net.SplitHostPort(r.options.Address)
		found, _ := r.options.Lookup(ctx, host) // without addresses, the upstream is asked
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
