package replica

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

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// Header marks a request of a replica, which is answered with what is stored only.
const Header = "X-Registry-Cache-Peer"

const (
	// patience bounds the wait for the header of an answer, from all replicas together, and for
	// each part of its body.
	patience = 500 * time.Millisecond
	// whole bounds an answer. What takes longer comes from the upstream.
	whole = time.Second
	// resting is how long a replica that failed is not asked again, and how long addresses are
	// kept.
	resting = 10 * time.Second
)

// Replicas are the other replicas. Its methods may be called at the same time.
type Replicas struct {
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
	// Lookup, Own and Dial may be nil; tests replace them.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Own    func() ([]net.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns the replicas. It sends nothing yet.
func New(o Options) *Replicas {
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	if o.Own == nil {
		o.Own = net.InterfaceAddrs
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: patience}).DialContext
	}
	transport := &http.Transport{
		DialContext: o.Dial, ResponseHeaderTimeout: patience,
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
	return &Replicas{options: o, http: &http.Client{Transport: transport}, failed: map[string]time.Time{}}
}

// Get lets use read the first answer that a replica has for a path below the repository, and
// reports whether use has accepted one. A replica whose answer use does not accept rests. ctx, and
// a second, bound all of it.
func (r *Replicas) Get(ctx context.Context, repository, path string, header http.Header, use func(*http.Response) error) bool {
	if r == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	patient := time.AfterFunc(patience, cancel)
	for _, address := range r.others(ctx) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url(address, repository, path), http.NoBody)
		if err != nil || ctx.Err() != nil {
			return false
		}
		maps.Copy(request.Header, header)
		request.Header.Set(Header, "1")
		response, err := r.http.Do(request)
		if err != nil {
			r.rest(address)
			continue
		}
		if response.StatusCode == http.StatusOK {
			response.Body = &paced{response.Body, patient}
			err = use(response)
			_ = response.Body.Close()
			if err == nil {
				metrics.Peer.Inc()
				return true
			}
			if !errors.Is(err, ErrUnused) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				r.rest(address)
			}
			return false
		}
		_ = response.Body.Close()
	}
	return false
}

// ErrUnused is returned by a use that does not need an answer, whatever it is.
var ErrUnused = errors.New("the answer of the replica is not used")

// url says which upstream is meant, because the address may belong to another cache by now.
func (r *Replicas) url(address, repository, path string) string {
	target := url.URL{Scheme: "http", Host: address, Path: "/v2/" + repository + "/" + path}
	if r.options.Certificate != nil {
		target.Scheme = "https"
	}
	if r.options.Namespace != "" {
		target.RawQuery = url.Values{"ns": {r.options.Namespace}}.Encode()
	}
	return target.String()
}

// others returns the addresses of replicas that have not failed lately. One caller at a time looks
// them up, and finishes that also if its client leaves. The others use what is known.
func (r *Replicas) others(ctx context.Context) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) > resting {
		r.looked = time.Now()
		r.mu.Unlock()
		found := r.lookUp(ctx)
		r.mu.Lock()
		r.addresses = found
		maps.DeleteFunc(r.failed, func(_ string, at time.Time) bool { return time.Since(at) > resting })
	}
	var fit []string
	for _, address := range r.addresses {
		if time.Since(r.failed[address]) > resting {
			fit = append(fit, address)
		}
	}
	return fit
}

func (r *Replicas) lookUp(ctx context.Context) (addresses []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	host, port, _ := net.SplitHostPort(r.options.Address)
	found, _ := r.options.Lookup(ctx, host) // without addresses the upstream is asked
	own, _ := r.options.Own()
	for _, ip := range found {
		if !slices.ContainsFunc(own, func(a net.Addr) bool { return strings.HasPrefix(a.String(), ip+"/") }) {
			addresses = append(addresses, net.JoinHostPort(ip, port))
		}
	}
	return addresses
}

// rest records that a replica has failed.
func (r *Replicas) rest(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[address] = time.Now()
}

// paced is a body that ends with an error when its next part takes longer than patience.
type paced struct {
	io.ReadCloser
	patient *time.Timer
}

// Read implements io.Reader.
func (p *paced) Read(buffer []byte) (int, error) {
	p.patient.Reset(patience)
	return p.ReadCloser.Read(buffer)
}
