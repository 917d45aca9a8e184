package ecr

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// hosts matches a private registry, also of China and of the European Sovereign Cloud, and by FIPS
// endpoint.
var hosts = regexp.MustCompile(`^\d{12}\.dkr\.ecr(-fips)?\.([a-z0-9-]+)\.amazonaws\.(?:com|com\.cn|eu)(?::443)?$`)

// New returns a source. It asks for nothing yet. An error is about Host and Region.
func New(o Options) (*Source, error) {
	region, endpoint := o.Region, aws.FIPSEndpointStateUnset
	if parts := hosts.FindStringSubmatch(o.Host); parts != nil {
		region = cmp.Or(region, parts[2])
		if parts[1] != "" && o.Endpoint == "" {
			endpoint = aws.FIPSEndpointStateEnabled
		}
	}
	if region == "" {
		return nil, fmt.Errorf("%s is no host of the form <account>.dkr.ecr.<region>.amazonaws.com: set the region", o.Host)
	}
	config := aws.Config{
		Region: region, HTTPClient: newClient(o),
		Credentials: credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} }, // Source has pauses of its own
	}
	if o.Endpoint != "" {
		config.BaseEndpoint = &o.Endpoint
	}
	if o.RoleARN != "" {
		client := sts.NewFromConfig(config, func(s *sts.Options) { s.EndpointOptions.UseFIPSEndpoint = endpoint })
		// Without a cache: a role is assumed for each token, and the wall clock does not matter.
		config.Credentials = stscreds.NewAssumeRoleProvider(client, o.RoleARN, func(a *stscreds.AssumeRoleOptions) {
			a.RoleSessionName = "registry-cache"
		})
	}
	api := ecr.NewFromConfig(config, func(e *ecr.Options) { e.EndpointOptions.UseFIPSEndpoint = endpoint })
	return &Source{region: region, api: api}, nil
}

// newClient returns a client whose phases have bounds. It keeps no connection: the next request is
// hours away. A signed request follows no redirect.
func newClient(o Options) *http.Client {
	dial := o.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: bounded{&http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial, DisableKeepAlives: true,
			TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: 3 * time.Second, MaxResponseHeaderBytes: mostBytes,
		}},
	}
}

// bounded bounds the bodies of answers.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, mostBytes)
	}
	return response, err
}

var (
	errUnreadable = errors.New("the answer has no valid token")
	codes         = regexp.MustCompile(`^[A-Za-z]{1,64}$`)
)

// reason describes err without the text of an answer: if a signature does not fit, AWS repeats what
// should have been signed, the session token included.
func reason(err error) error {
	where := "GetAuthorizationToken"
	for {
		operation, ok := errors.AsType[*smithy.OperationError](err)
		if !ok {
			break
		}
		where, err = operation.Operation(), operation.Err // the innermost: AssumeRole, if that fails
	}
	if answer, ok := errors.AsType[smithy.APIError](err); ok && codes.MatchString(answer.ErrorCode()) {
		return fmt.Errorf("AWS answers %s with %s", where, answer.ErrorCode())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("AWS does not answer %s within %s", where, timeout)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", where, failed.Err)
	}
	return fmt.Errorf("%s: %w", where, errUnreadable)
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
