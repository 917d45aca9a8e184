package server

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// ECR makes the registry act as a private registry of Amazon ECR. It contains the access key with
// which clients get tokens from the API, and the lifetime of each token.
type ECR struct {
	AccessKeyID, SecretAccessKey string
	Life                         time.Duration
}

// Encode returns the content of a file for ReplaceECR.
func (a ECR) Encode() ([]byte, error) { return json.Marshal(a) }

// ReplaceECR atomically replaces the file at path with in, which is the output of Encode.
func ReplaceECR(path string, in io.Reader) error {
	return replaceFile(path, in, func(content []byte) error { return json.Unmarshal(content, new(ECR)) })
}

// readECR returns nil if there is no file. Then the registry requires no token.
func readECR(path string) (*ECR, error) {
	content, err := readFile(path)
	if err != nil || len(content) == 0 {
		return nil, err
	}
	access := &ECR{}
	return access, json.Unmarshal(content, access)
}

// The API of a region is at api.ecr.<region>.amazonaws.com.
const apiPrefix, apiSuffix = "api.ecr.", ".amazonaws.com"

// ecrTarget is the name of the only operation that the API supports.
const ecrTarget = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"

// ecrRegistry requires the tokens that its API issues.
type ecrRegistry struct {
	path string
	next http.Handler

	mu      sync.Mutex
	access  ECR
	expires map[string]time.Time // by token
}

// sellTokens returns the Middleware that reads an ECR from the file at path for each request.
// Without the file it changes nothing. Another ECR in the file revokes all tokens. The testbed's
// own requests need no token. The Middleware uses no SDK, because the binary must stay small.
func sellTokens(path string) Middleware {
	return func(next http.Handler) http.Handler {
		return &ecrRegistry{path: path, next: next, expires: map[string]time.Time{}}
	}
}

// ServeHTTP implements http.Handler.
func (e *ecrRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	access, err := readECR(e.path)
	region, isAPI := strings.CutPrefix(r.Host, apiPrefix)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case access == nil, accesslog.AskerOf(r.UserAgent()) == accesslog.AskerHarness:
		e.next.ServeHTTP(w, r)
	case isAPI:
		e.sell(w, r, *access, strings.TrimSuffix(region, apiSuffix))
	case !strings.HasPrefix(r.URL.Path, "/v2/"): // the target of a redirect: its signed URL is enough
		e.next.ServeHTTP(w, r)
	default:
		e.admit(w, r, *access)
	}
}

// sell answers a signed request with a token.
func (e *ecrRegistry) sell(w http.ResponseWriter, r *http.Request, access ECR, region string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = access.verify(r, body, "ecr", region)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err == nil && (r.Method != http.MethodPost || r.Header.Get("X-Amz-Target") != ecrTarget) {
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

func (e *ecrRegistry) issue(access ECR) (token string, expires time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.use(access)
	token, expires = rand.Text(), time.Now().Add(access.Life)
	e.expires[token] = expires
	return token, expires
}

// use drops all tokens if access differs from the last ECR. The caller must hold the lock.
func (e *ecrRegistry) use(access ECR) {
	if e.access != access {
		e.access = access
		clear(e.expires)
	}
}

// admit passes on requests with a valid token, and answers others as ECR does.
func (e *ecrRegistry) admit(w http.ResponseWriter, r *http.Request, access ECR) {
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
