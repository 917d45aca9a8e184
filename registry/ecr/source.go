// Package ecr gets the credentials for a private registry in Amazon ECR from AWS: a user name and a
// token that is valid for twelve hours. It keeps the token in memory, and renews it before it
// expires. Requests to AWS are signed (Signature Version 4): the secret access key is never sent.
//
// Package upstream uses these credentials in the same way as a configured user name and password.
package ecr

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/singleflight"

	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

const (
	// timeout limits how long getting a token takes, including the request to assume the role.
	timeout = 10 * time.Second
	// longestLife limits how long a token is used. AWS issues tokens for twelve hours.
	longestLife = 12 * time.Hour
	// leastPause is the pause between requests after the first failure. Each further failure doubles
	// the pause, up to mostPause. A longer Retry-After is respected, up to mostRetryAfter.
	leastPause, mostPause, mostRetryAfter = time.Second, time.Minute, 15 * time.Minute
	// refusedPause is how long AWS is not asked after it has issued a token, unless the token must be
	// renewed earlier. It is also the minimum pause after AWS has throttled a request.
	refusedPause = 10 * time.Second
)

// Options configure a Source. Endpoint, Region, SessionToken, RoleARN and Roots may be empty.
type Options struct {
	Host                                       string // the registry, <account>.dkr.ecr.<region>.amazonaws.com
	Region                                     string // overrides the region in Host
	RoleARN                                    string // the role to assume with the access key
	AccessKeyID, SecretAccessKey, SessionToken string
	Endpoint                                   string // URL of the APIs of ECR and STS, by default that of AWS in the region
	Roots                                      *x509.CertPool

	dial upstream.Dial // for tests
}

// Source is a source of credentials. It is safe for concurrent use.
type Source struct {
	region string
	api    *ecr.Client
	asking singleflight.Group

	mu       sync.Mutex
	current  token
	earliest time.Time // no request to AWS before this time
	pause    time.Duration
	failure  error // the error to return until earliest
}

// token contains credentials from AWS. Changes to the system clock do not affect its times.
type token struct {
	username, password string
	renew, expires     time.Time // renew is zero after the registry has refused the token
}

// hosts matches the host names of private registries, including FIPS endpoints and the registries
// in China and in the European Sovereign Cloud.
var hosts = regexp.MustCompile(`^\d{12}\.dkr\.ecr(-fips)?\.([a-z0-9-]+)\.amazonaws\.(?:com|com\.cn|eu)(?::443)?$`)

// New returns a source without sending a request. It fails if the region is unknown.
func New(o Options) (*Source, error) {
	region, fips := o.Region, aws.FIPSEndpointStateUnset
	if parts := hosts.FindStringSubmatch(o.Host); parts != nil {
		region = cmp.Or(region, parts[2])
		if parts[1] != "" && o.Endpoint == "" {
			fips = aws.FIPSEndpointStateEnabled
		}
	}
	if region == "" {
		return nil, fmt.Errorf("%s does not have the form <account>.dkr.ecr.<region>.amazonaws.com: set the region", o.Host)
	}
	config := aws.Config{
		Region: region, Credentials: credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} }, // Source implements its own pauses
		HTTPClient: &http.Client{ // a signed request must not be redirected
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     upstream.Discreet(o.Roots, o.dial),
		},
	}
	if o.Endpoint != "" {
		config.BaseEndpoint = &o.Endpoint
	}
	if o.RoleARN != "" {
		client := sts.NewFromConfig(config, func(s *sts.Options) { s.EndpointOptions.UseFIPSEndpoint = fips })
		// The provider caches nothing: it assumes the role for each token. So a wrong system clock
		// cannot make it use expired credentials.
		config.Credentials = stscreds.NewAssumeRoleProvider(client, o.RoleARN, func(a *stscreds.AssumeRoleOptions) {
			a.RoleSessionName = "registry-cache"
		})
	}
	api := ecr.NewFromConfig(config, func(e *ecr.Options) { e.EndpointOptions.UseFIPSEndpoint = fips })
	return &Source{region: region, api: api}, nil
}

// Credentials returns a user name and a password for the registry. Without a token, it asks AWS.
// All callers share one request, which takes at most ten seconds and continues even if ctx is done.
// A token is renewed in the background when a tenth of its lifetime, at most five minutes, is left.
// If refused is the current token, Credentials waits for a new one, unless AWS issued the current
// one less than ten seconds ago: the refusal may have another reason.
//
// After a failure, AWS is not asked again for a second, or for ten seconds if AWS throttles. Each
// further failure in a row doubles the second, up to a minute. A longer Retry-After counts, up to
// 15 minutes. Errors contain neither the access key, nor a token, nor the text of an answer.
func (s *Source) Credentials(ctx context.Context, refused string) (username, password string, err error) {
	t, due, err := s.state(refused)
	if !due {
		return t.username, t.password, err
	}
	asked := s.asking.DoChan("", func() (any, error) {
		s.refresh(context.WithoutCancel(ctx))
		return nil, nil
	})
	if t.renew.IsZero() { // there is no usable token
		select {
		case <-asked:
			t, _, err = s.state("")
		case <-ctx.Done():
			return "", "", fmt.Errorf("wait for a token from Amazon ECR: %w", context.Cause(ctx))
		}
	}
	return t.username, t.password, err
}

// state returns the token unless it has expired, otherwise the last error. due is true if AWS
// should be asked now: the token must be renewed, and the pause has ended.
func (s *Source) state(refused string) (t token, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused != "" && refused == s.current.password {
		s.current.renew = time.Time{}
	}
	now := time.Now()
	due = !now.Before(s.current.renew) && !now.Before(s.earliest)
	if now.Before(s.current.expires) {
		return s.current, due, nil
	}
	return token{}, due, s.failure
}

// refresh asks AWS for a token, unless another call has just done so.
func (s *Source) refresh(ctx context.Context) {
	if _, due, _ := s.state(""); !due {
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
	s.failure = fmt.Errorf("get a token from Amazon ECR in %s: %w", s.region, reason(err))
	slog.Warn("no token from Amazon ECR", "region", s.region, "reason", reason(err), "next", wait)
}

// ask requests a token from AWS. It calculates the token's lifetime with the time in AWS's answer.
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
	username, password, _ := strings.Cut(string(decoded), ":")
	then, ok := awsmiddleware.GetServerTime(answer.ResultMetadata)
	if !ok {
		then = now
	}
	life := min(aws.ToTime(data.ExpiresAt).Sub(then), longestLife)
	if err != nil || password == "" || life <= 0 {
		return t, errUnreadable
	}
	return token{username, password, now.Add(life - min(life/10, 5*time.Minute)), now.Add(life)}, nil
}

var (
	errUnreadable = errors.New("the answer contains no valid token")
	codes         = regexp.MustCompile(`^[A-Za-z]{1,64}$`)
)

// reason describes err without the text of an answer: if a signature is wrong, AWS repeats what
// should have been signed, including the session token.
func reason(err error) error {
	where := "GetAuthorizationToken"
	for operation, ok := errors.AsType[*smithy.OperationError](err); ok; operation, ok = errors.AsType[*smithy.OperationError](err) {
		where, err = operation.Operation(), operation.Err // the innermost operation, such as AssumeRole
	}
	if answer, ok := errors.AsType[smithy.APIError](err); ok && codes.MatchString(answer.ErrorCode()) {
		return fmt.Errorf("AWS answers %s with %s", where, answer.ErrorCode())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("AWS does not answer %s within %s", where, timeout)
	}
	cause := errUnreadable
	if failed, ok := errors.AsType[*upstream.AwayError](err); ok {
		cause = failed.Unwrap()
	}
	return fmt.Errorf("%s: %w", where, cause)
}

// held returns the pause that AWS demands in its answer, or 0 without one. It is at least
// refusedPause if AWS throttles.
func held(err error) (wait time.Duration) {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		if _, throttled := retry.DefaultThrottleErrorCodes[answer.ErrorCode()]; throttled {
			wait = refusedPause
		}
	}
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		seconds, _ := strconv.Atoi(answer.HTTPResponse().Header.Get("Retry-After"))
		wait = max(wait, min(time.Duration(min(seconds, 1e6))*time.Second, mostRetryAfter))
	}
	return wait
}
