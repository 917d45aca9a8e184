package ecr

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// The API of a region is at api.ecr.<region>.amazonaws.com.
const apiPrefix, apiSuffix = "api.ecr.", ".amazonaws.com"

// target is the only operation.
const target = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"

// registry admits tokens of its API.
type registry struct {
	path string
	next http.Handler

	mu      sync.Mutex
	access  Access
	expires map[string]time.Time // by token
}

// Middleware returns a middleware that reads the Access from the file at path for each request.
// Without the file it changes nothing. Another Access revokes all tokens. The testbed's own
// requests need no token.
func Middleware(path string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return &registry{path: path, next: next, expires: map[string]time.Time{}}
	}
}

// ServeHTTP implements http.Handler.
func (e *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	access, err := read(e.path)
	region, isAPI := strings.CutPrefix(r.Host, apiPrefix)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case access == nil, accesslog.AskerOf(r.UserAgent()) == accesslog.AskerHarness:
		e.next.ServeHTTP(w, r)
	case isAPI:
		e.sell(w, r, *access, strings.TrimSuffix(region, apiSuffix))
	case !strings.HasPrefix(r.URL.Path, "/v2/"): // where the registry redirects to, a signature is enough
		e.next.ServeHTTP(w, r)
	default:
		e.admit(w, r, *access)
	}
}

// sell answers a signed request with a token.
func (e *registry) sell(w http.ResponseWriter, r *http.Request, access Access, region string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = access.verify(r, body, "ecr", region)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err == nil && (r.Method != http.MethodPost || r.Header.Get("X-Amz-Target") != target) {
		err = fmt.Errorf("UnknownOperationException")
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":%q,"message":"refused"}`, err)
		return
	}
	token, expires := e.issue(access)
	fmt.Fprintf(w, `{"authorizationData":[{"authorizationToken":%q,"expiresAt":%d,"proxyEndpoint":"https://%s"}]}`,
		base64.StdEncoding.EncodeToString([]byte("AWS:"+token)), expires.Unix(), "registry"+apiSuffix)
}

func (e *registry) issue(access Access) (token string, expires time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.use(access)
	token, expires = rand.Text(), time.Now().Add(access.Life)
	e.expires[token] = expires
	return token, expires
}

// use drops the tokens of another Access. The caller holds the lock.
func (e *registry) use(access Access) {
	if e.access != access {
		e.access = access
		clear(e.expires)
	}
}

// admit passes requests with a token on, and answers others as ECR does.
func (e *registry) admit(w http.ResponseWriter, r *http.Request, access Access) {
	username, password, ok := r.BasicAuth()
	if !ok {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Basic realm="https://%s/",service="ecr.amazonaws.com"`, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "Not Authorized\n") // the client may have disconnected
		return
	}
	e.mu.Lock()
	e.use(access)
	valid := username == "AWS" && time.Now().Before(e.expires[password])
	e.mu.Unlock()
	if !valid {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"Your authorization token has expired. Reauthenticate and try again."}]}`)
		return
	}
	e.next.ServeHTTP(w, r)
}
