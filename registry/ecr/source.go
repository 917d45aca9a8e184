// Package ecr gets the credentials of a private registry of Amazon ECR: a token of twelve hours,
// for which it asks the API of AWS with an access key. It keeps the token in memory, renews it
// before it expires, and sends the access key to nobody: requests are signed (Signature Version 4).
//
// The package knows no registry: package upstream uses the credentials as those of a Secret.
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
	// timeout is how long the requests for one token may take together.
	timeout = 10 * time.Second
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
	Host                                       string // of the registry, <account>.dkr.ecr.<region>.amazonaws.com
	Region                                     string // overrides that of Host
	RoleARN                                    string // of the role to assume with the access key
	AccessKeyID, SecretAccessKey, SessionToken string
	Endpoint                                   string // URL of the APIs of ECR and STS, by default those of AWS in the region
	Roots                                      *x509.CertPool

	dial upstream.Dial // for tests
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
	renew, expires     time.Time // renew is zero for a token that was refused
}

// hosts matches a private registry, also of China and of the European Sovereign Cloud, and by FIPS
// endpoint.
var hosts = regexp.MustCompile(`^\d{12}\.dkr\.ecr(-fips)?\.([a-z0-9-]+)\.amazonaws\.(?:com|com\.cn|eu)(?::443)?$`)

// New returns a source. It asks for nothing yet. An error is about Host and Region.
func New(o Options) (*Source, error) {
	region, fips := o.Region, aws.FIPSEndpointStateUnset
	if parts := hosts.FindStringSubmatch(o.Host); parts != nil {
		region = cmp.Or(region, parts[2])
		if parts[1] != "" && o.Endpoint == "" {
			fips = aws.FIPSEndpointStateEnabled
		}
	}
	if region == "" {
		return nil, fmt.Errorf("%s is no host of the form <account>.dkr.ecr.<region>.amazonaws.com: set the region", o.Host)
	}
	config := aws.Config{
		Region: region, Credentials: credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} }, // Source has pauses of its own
		HTTPClient: &http.Client{ // a signed request follows no redirect
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     upstream.Discreet(o.Roots, o.dial),
		},
	}
	if o.Endpoint != "" {
		config.BaseEndpoint = &o.Endpoint
	}
	if o.RoleARN != "" {
		client := sts.NewFromConfig(config, func(s *sts.Options) { s.EndpointOptions.UseFIPSEndpoint = fips })
		// Without a cache: a role is assumed for each token, and the wall clock does not matter.
		config.Credentials = stscreds.NewAssumeRoleProvider(client, o.RoleARN, func(a *stscreds.AssumeRoleOptions) {
			a.RoleSessionName = "registry-cache"
		})
	}
	api := ecr.NewFromConfig(config, func(e *ecr.Options) { e.EndpointOptions.UseFIPSEndpoint = fips })
	return &Source{region: region, api: api}, nil
}

// Credentials returns a user name and a password for the registry. It asks AWS if there is no token
// and none is on its way: for at most ten seconds, also if ctx ends earlier. A token is renewed in
// the background when a tenth of its life is left, five minutes at most, and used until it expires.
// If it is the password that the registry has refused, the call waits for another one, ten seconds
// after the last request at the earliest. Until then it counts: the registry may refuse something
// else.
//
// After a failure the same error is returned for a while: a second at first, a minute at last, ten
// seconds at least if AWS throttles, or as long as AWS says by Retry-After, up to 15 minutes.
// Errors contain nothing of the access key, of a token, or of the text of an answer.
func (s *Source) Credentials(ctx context.Context, refused string) (username, password string, err error) {
	t, due, err := s.state(refused)
	if !due {
		return t.username, t.password, err
	}
	asked := s.asking.DoChan("", func() (any, error) {
		s.refresh(context.WithoutCancel(ctx))
		return nil, nil
	})
	if t.renew.IsZero() { // there is none to use meanwhile
		select {
		case <-asked:
			t, _, err = s.state("")
		case <-ctx.Done():
			return "", "", fmt.Errorf("wait for a token of Amazon ECR: %w", context.Cause(ctx))
		}
	}
	return t.username, t.password, err
}

// state returns the token, or an error if there is none. It returns whether AWS should be asked.
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

// refresh asks AWS, unless another call has just done so.
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
	errUnreadable = errors.New("the answer has no valid token")
	codes         = regexp.MustCompile(`^[A-Za-z]{1,64}$`)
)

// reason describes err without the text of an answer: if a signature does not fit, AWS repeats what
// should have been signed, the session token included.
func reason(err error) error {
	where := "GetAuthorizationToken"
	for operation, ok := errors.AsType[*smithy.OperationError](err); ok; operation, ok = errors.AsType[*smithy.OperationError](err) {
		where, err = operation.Operation(), operation.Err // the innermost: AssumeRole, if that fails
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

// held returns how long AWS asks to wait, 0 if it does not.
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
