package ecr

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"golang.org/x/sync/singleflight"
)

const (
	// timeout is how long the requests for one token may take together.
	timeout = 10 * time.Second
	// mostBytes bounds the headers and the body of an answer. A token has some 2 KiB.
	mostBytes = 64 << 10
	// longestLife is how long AWS lets a token live. No token is kept for longer.
	longestLife = 12 * time.Hour
	// leastPause is how long the next request waits after an answer. After failures in a row it
	// doubles up to mostPause, and Retry-After counts up to mostRetryAfter.
	leastPause, mostPause, mostRetryAfter = time.Second, time.Minute, 15 * time.Minute
	// refusedPause is the least pause after a token, and after AWS has throttled.
	refusedPause = 10 * time.Second
)

// Options say which registry there is, and who asks. Endpoint, Region, SessionToken, RoleARN and
// Roots may be empty.
type Options struct {
	// Host is that of the registry, <account>.dkr.ecr.<region>.amazonaws.com.
	Host string
	// Region overrides that of Host.
	Region string
	// RoleARN is the role to assume with the access key.
	RoleARN                                    string
	AccessKeyID, SecretAccessKey, SessionToken string
	// Endpoint is the URL of the APIs of ECR and STS, by default those of AWS in the region.
	Endpoint string
	Roots    *x509.CertPool

	dial func(ctx context.Context, network, address string) (net.Conn, error) // for tests
}

// Source is a source of credentials. Its methods may be called at the same time.
type Source struct {
	region string
	api    *ecr.Client
	asking singleflight.Group

	mu       sync.Mutex
	current  token
	earliest time.Time // of the next request
	pause    time.Duration
	failure  error // why there is no token before earliest
}

// token has times of the monotonic clock: a step of the wall clock does not matter.
type token struct {
	username, password string
	renew, expires     time.Time
	doubted            bool
}

// Credentials returns a user name and a password for the registry. It asks AWS if there is no token
// and none is on its way: for at most ten seconds, also if ctx ends earlier. A token is renewed in
// the background when a tenth of its life is left, five minutes at most, and used until it expires.
//
// After a failure the same error is returned for a while: a second at first, a minute at last, ten
// seconds at least if AWS throttles, or as long as AWS says by Retry-After, up to 15 minutes.
// Errors contain nothing of the access key, of a token, or of the text of an answer.
func (s *Source) Credentials(ctx context.Context) (username, password string, err error) {
	t, due, err := s.state()
	if !due {
		return t.username, t.password, err
	}
	asked := s.asking.DoChan("", func() (any, error) {
		s.refresh(context.WithoutCancel(ctx))
		return nil, nil
	})
	if t.password != "" && !t.doubted {
		return t.username, t.password, nil
	}
	select {
	case <-asked:
		t, _, err = s.state()
		return t.username, t.password, err
	case <-ctx.Done():
		return "", "", fmt.Errorf("wait for a token of Amazon ECR: %w", context.Cause(ctx))
	}
}

// Refused says that the registry has refused a password. The next call of Credentials waits for
// another one, ten seconds after the last request at the earliest. Until then the password counts:
// the registry may refuse something else.
func (s *Source) Refused(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if password != "" && password == s.current.password {
		s.current.renew, s.current.doubted = time.Time{}, true
	}
}

// state returns the token, or an error if there is none. It returns whether AWS should be asked.
func (s *Source) state() (t token, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	due = !now.Before(s.current.renew) && !now.Before(s.earliest)
	if now.Before(s.current.expires) {
		return s.current, due, nil
	}
	return token{}, due, s.failure
}

// refresh asks AWS, unless another call has just done so.
func (s *Source) refresh(ctx context.Context) {
	if _, due, _ := s.state(); !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t, err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err == nil {
		s.current, s.pause, s.failure = t, 0, nil
		s.earliest = now.Add(min(refusedPause, t.renew.Sub(now)))
		return
	}
	s.pause = min(max(2*s.pause, leastPause), mostPause)
	wait := max(s.pause, held(err))
	s.earliest = now.Add(wait)
	s.failure = fmt.Errorf("get a token of Amazon ECR in %s: %w", s.region, reason(err))
	slog.Warn("no token of Amazon ECR", "region", s.region, "reason", reason(err), "next", wait)
}

// ask asks AWS for a token. Its life is measured by the clock of AWS.
func (s *Source) ask(ctx context.Context) (t token, err error) {
	answer, err := s.api.GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return t, err
	}
	if len(answer.AuthorizationData) == 0 {
		return t, errUnreadable
	}
	data, now := answer.AuthorizationData[0], time.Now()
	decoded, err := base64.StdEncoding.DecodeString(aws.ToString(data.AuthorizationToken))
	username, password, ok := strings.Cut(string(decoded), ":")
	if err != nil || !ok || password == "" {
		return t, errUnreadable
	}
	then, ok := awsmiddleware.GetServerTime(answer.ResultMetadata)
	if !ok {
		then = now
	}
	life := min(aws.ToTime(data.ExpiresAt).Sub(then), longestLife)
	if life <= 0 {
		return t, errUnreadable
	}
	return token{username, password, now.Add(life - min(life/10, 5*time.Minute)), now.Add(life), false}, nil
}
