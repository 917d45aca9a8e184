package ecr

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	host    = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	role    = "arn:aws:iam::123456789012:role/puller"
	session = "SESSION-TOKEN"
)

var (
	user    = aws.Credentials{AccessKeyID: "AKIDUSER", SecretAccessKey: "USER-SECRET"}
	assumed = aws.Credentials{AccessKeyID: "AKIDROLE", SecretAccessKey: "ROLE-SECRET", SessionToken: session}
)

// cloud implements the APIs of ECR and STS. Requests are sent in memory, so time can be virtual.
type cloud struct {
	t     *testing.T
	pipes chan net.Conn

	mu       sync.Mutex
	life     time.Duration // the lifetime of a token
	ahead    time.Duration // how far the clock is ahead
	signer   aws.Credentials
	broken   http.HandlerFunc // if set, answers instead of the APIs
	requests []string         // requests with a valid signature
	number   int              // number of issued tokens
}

// newCloud must be called in a bubble of synctest.
func newCloud(t *testing.T) *cloud {
	c := &cloud{t: t, pipes: make(chan net.Conn), life: 12 * time.Hour, signer: user}
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(c) }()
	t.Cleanup(func() { _ = server.Close() })
	return c
}

// source returns a Source that uses the cloud.
func (c *cloud) source(change func(*Options)) *Source {
	c.t.Helper()
	o := Options{
		Host: host, AccessKeyID: user.AccessKeyID, SecretAccessKey: user.SecretAccessKey, Endpoint: "http://api.test", dial: c.dial,
	}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c *cloud) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	c.pipes <- server
	return client, nil
}

// Accept implements net.Listener.
func (c *cloud) Accept() (net.Conn, error) {
	if conn, ok := <-c.pipes; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (c *cloud) Close() error { close(c.pipes); return nil }

// Addr implements net.Listener.
func (c *cloud) Addr() net.Addr { return &net.TCPAddr{} }

func (c *cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// asked returns the accepted requests since the last call.
func (c *cloud) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	broken := c.broken
	c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Error(err)
	}
	w.Header().Set("Date", time.Now().Add(c.ahead).UTC().Format(http.TimeFormat))
	if broken != nil {
		c.set(func() { c.requests = append(c.requests, "broken") })
		broken(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	service, signer := "sts", user
	if r.Header.Get("X-Amz-Target") == "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken" {
		service, signer = "ecr", c.signer
	}
	if problem := c.verify(r.Context(), r, body, service, signer); problem != "" {
		c.refuse(w, problem)
		return
	}
	if service == "ecr" {
		c.token(w, body)
		return
	}
	c.role(w, body)
}

// verify checks the signature as AWS does: it signs the request again.
func (c *cloud) verify(ctx context.Context, r *http.Request, body []byte, service string, signer aws.Credentials) string {
	then, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return "MissingAuthenticationToken"
	}
	if skew := time.Now().Add(c.ahead).Sub(then).Abs(); skew > 5*time.Minute {
		return "RequestTimeTooSkewed"
	}
	got := r.Header.Get("Authorization")
	again, err := http.NewRequestWithContext(ctx, r.Method, "http://"+r.Host+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	_, signed, _ := strings.Cut(got, "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	for name := range strings.SplitSeq(signed, ";") {
		if values := r.Header.Values(name); name != "content-length" && values != nil {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	hash := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, signer, again, hex.EncodeToString(hash[:]), service, "eu-central-1", then); err != nil {
		return err.Error()
	}
	scope := fmt.Sprintf("Credential=%s/%s/eu-central-1/%s/aws4_request", signer.AccessKeyID, then.Format("20060102"), service)
	if again.Header.Get("Authorization") != got || !strings.Contains(got, scope) || r.Header.Get("X-Amz-Security-Token") != signer.SessionToken {
		return "InvalidSignatureException"
	}
	return ""
}

// refuse answers as AWS does, with the text that should have been signed.
func (c *cloud) refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"__type":%q,"message":"The Canonical String should have been x-amz-security-token:%s %s"}`, code, session, user.SecretAccessKey)
}

func (c *cloud) token(w http.ResponseWriter, body []byte) {
	if string(body) != "{}" {
		c.t.Errorf("the body of GetAuthorizationToken is %s", body)
	}
	c.number++
	c.requests = append(c.requests, "GetAuthorizationToken")
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	fmt.Fprintf(w, `{"authorizationData":[{"authorizationToken":%q,"expiresAt":%f,"proxyEndpoint":"https://%s"}]}`,
		base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "AWS:token-%d", c.number)),
		float64(time.Now().Add(c.ahead+c.life).UnixMilli())/1000, host)
}

func (c *cloud) role(w http.ResponseWriter, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("Action") != "AssumeRole" || form.Get("RoleArn") != role || form.Get("RoleSessionName") != "registry-cache" {
		c.t.Errorf("the body of the request is %s", body)
	}
	c.requests = append(c.requests, "AssumeRole")
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>`+
		`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration>`+
		`</Credentials></AssumeRoleResult></AssumeRoleResponse>`,
		assumed.AccessKeyID, assumed.SecretAccessKey, assumed.SessionToken, time.Now().Add(15*time.Minute).UTC().Format(time.RFC3339))
}
