package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker/auth"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/sync/singleflight"
)

const (
	mostTokens = 1000
	// defaultLife is how long a token lives whose life is not told (distribution, token
	// specification).
	defaultLife = time.Minute
	// settled is the age from which a token may be the reason of any refusal.
	settled      = time.Minute
	largestToken = 1 << 20
)

type repositoryKey struct{}

// authorization answers the challenges of a host for a repository.
type authorization struct {
	header       string
	withheld     bool // the token server got no credentials, although there are some
	challenge    auth.Challenge
	got, expires time.Time
}

// authenticator is a transport that answers challenges. The credentials go to the upstream and to
// token servers of its registrable domain only (CVE-2026-33540). Other token servers, and those of
// hosts to which the upstream redirects, are asked anonymously.
type authenticator struct {
	wires       http.RoundTripper
	upstream    *url.URL
	credentials func(context.Context) (username, password string, err error) // or nil
	refused     func(password string)                                        // or nil
	failures    *failures

	asking singleflight.Group
	known  *lru.Cache[string, *authorization] // by host and repository
}

func newAuthenticator(wires http.RoundTripper, o Options, failures *failures) *authenticator {
	known, _ := lru.New[string, *authorization](mostTokens) // fails for a size of 0
	return &authenticator{
		wires: wires, upstream: o.URL, credentials: o.Credentials, refused: o.Refused, failures: failures, known: known,
	}
}

// RoundTrip implements http.RoundTripper.
func (a *authenticator) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	repository, _ := ctx.Value(repositoryKey{}).(string)
	if repository == "" { // the root of the API
		return a.wires.RoundTrip(request)
	}
	key := request.URL.Scheme + "://" + request.URL.Host + " " + repository
	used, _ := a.known.Get(key)
	if used != nil && time.Now().After(used.expires) {
		used, _ = a.renew(ctx, key, used, used.challenge) // if there is none, the answer tells why
	}
	response, err := a.send(request, used)
	if err != nil || !used.mayBeRefused(response.StatusCode) {
		return response, err
	}
	challenge, ok := a.challenge(response.Header, request.URL)
	if !ok && used != nil {
		challenge, ok = used.challenge, true
	}
	if !ok {
		return response, nil
	}
	if used != nil && a.refused != nil {
		if _, password, basic := (&http.Request{Header: http.Header{"Authorization": {used.header}}}).BasicAuth(); basic {
			a.refused(password)
		}
	}
	now, err := a.renew(ctx, key, used, challenge)
	if err != nil && used != nil && response.StatusCode != http.StatusUnauthorized {
		return response, nil // the token may be good, and the refusal the registry's own
	}
	if err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	if now == nil || used != nil && now.header == used.header {
		return response, nil
	}
	_ = response.Body.Close()
	return a.send(request, now)
}

func (a *authenticator) send(request *http.Request, with *authorization) (*http.Response, error) {
	if with == nil {
		return a.wires.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", with.header)
	response, err := a.wires.RoundTrip(request)
	if err == nil && with.withheld && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden) {
		return nil, errors.Join(&AwayError{noToken: true, cause: errWithheld}, response.Body.Close())
	}
	return response, err
}

// errWithheld says that a client with the same credentials may get what the cache does not.
var errWithheld = errors.New("the token server is on another site than the upstream, or without TLS: it gets no credentials")

// mayBeRefused reports whether another token may change the answer. public.ecr.aws answers an
// expired one with 400, others with 403, as Amazon ECR does for a password, and some hide with 404
// what a token does not allow.
func (a *authorization) mayBeRefused(status int) bool {
	switch {
	case status == http.StatusUnauthorized:
		return true
	case a == nil || !isRefusal(status):
		return false
	}
	often := status == http.StatusBadRequest || status == http.StatusForbidden
	return often || time.Since(a.got) > settled
}

// challenge chooses the challenge that can be answered.
func (a *authenticator) challenge(header http.Header, of *url.URL) (auth.Challenge, bool) {
	for _, one := range auth.ParseAuthHeader(header) {
		if one.Scheme == auth.BearerAuth || one.Scheme == auth.BasicAuth && a.credentials != nil && a.isUpstream(of) {
			return one, true
		}
	}
	return auth.Challenge{}, false
}

func (a *authenticator) isUpstream(target *url.URL) bool {
	return target.Scheme == a.upstream.Scheme && target.Host == a.upstream.Host
}

// renew gets an authorization instead of the used one, once for all who ask at the same time. It is
// nil if the challenge cannot be answered.
func (a *authenticator) renew(ctx context.Context, key string, used *authorization, challenge auth.Challenge) (*authorization, error) {
	getting := a.asking.DoChan(key, func() (any, error) {
		if now, _ := a.known.Get(key); now != nil && now != used && time.Now().Before(now.expires) {
			return now, nil // another request has got it meanwhile
		}
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), longest, ErrLate)
		defer cancel()
		host, repository, _ := strings.Cut(key, " ")
		now, err := a.answer(ctx, host, repository, challenge)
		if err == nil && now != nil {
			a.known.Add(key, now)
		}
		return now, err
	})
	if waits, ok := ctx.Value(waitsForToken{}).(*atomic.Value); ok {
		waits.Store(key)
		defer waits.Store("")
	}
	select {
	case got := <-getting:
		now, _ := got.Val.(*authorization)
		return now, got.Err
	case <-ctx.Done():
		return nil, &AwayError{noToken: true, cause: context.Cause(ctx)}
	}
}

// answer answers a challenge of a host.
func (a *authenticator) answer(ctx context.Context, host, repository string, challenge auth.Challenge) (*authorization, error) {
	var username, password string
	var err error
	of, _ := url.Parse(host)
	if a.credentials != nil && a.isUpstream(of) {
		if username, password, err = a.credentials(ctx); err != nil {
			return nil, &AwayError{noToken: true, cause: err}
		}
	}
	if challenge.Scheme == auth.BasicAuth {
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(username, password)
		return &authorization{
			header: basic.Header.Get("Authorization"), challenge: challenge, got: time.Now(), expires: time.Now().Add(2 * settled),
		}, nil
	}
	options, err := auth.GenerateTokenOptions(ctx, of.Host, "", "", challenge)
	realm, invalid := url.Parse(options.Realm)
	if err != nil || invalid != nil || realm.Host == "" || realm.Scheme != "http" && realm.Scheme != "https" {
		return nil, &AwayError{noToken: true, cause: errors.New("the upstream names no token server in its challenge")}
	}
	if scope := "repository:" + repository + ":pull"; !slices.Contains(options.Scopes, scope) && (a.isUpstream(of) || options.Scopes == nil) {
		options.Scopes = append([]string{scope}, options.Scopes...)
	}
	withheld := password != "" && !a.trusts(realm)
	if withheld {
		slog.WarnContext(ctx, errWithheld.Error(), "upstream", a.upstream.Host, "token server", realm.Host)
	} else {
		options.Username, options.Secret = username, password
	}
	got, err := a.token(ctx, realm, options)
	if _, refused := errors.AsType[*RefusedError](err); refused && withheld {
		err = &AwayError{noToken: true, cause: errWithheld}
	}
	if err != nil {
		return nil, err
	}
	got.withheld, got.challenge = withheld, challenge
	return got, nil
}

// trusts reports whether the credentials may go to a token server: it has the host or the
// registrable domain of the upstream, and TLS if the upstream has.
func (a *authenticator) trusts(realm *url.URL) bool {
	if a.upstream.Scheme == "https" && realm.Scheme != "https" {
		return false
	}
	one, other := strings.ToLower(a.upstream.Hostname()), strings.ToLower(realm.Hostname())
	if one == other || net.ParseIP(one) != nil || net.ParseIP(other) != nil {
		return one == other
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(one)
	otherSite, otherErr := publicsuffix.EffectiveTLDPlusOne(other)
	return err == nil && otherErr == nil && site == otherSite
}

// token asks a token server. Nothing of its answer but the token leaves this function.
func (a *authenticator) token(ctx context.Context, realm *url.URL, options auth.TokenOptions) (*authorization, error) {
	server := "token server " + realm.Host
	if err := a.failures.check(server); err != nil {
		away, _ := errors.AsType[*AwayError](err)
		away.noToken = true
		return nil, away
	}
	client := &http.Client{Transport: tokenWire{a.wires}, CheckRedirect: func(next *http.Request, earlier []*http.Request) error {
		if len(earlier) >= redirects {
			return fmt.Errorf("more than %d redirects", redirects)
		}
		if options.Secret != "" && !a.trusts(next.URL) {
			return errors.New("the token server redirects to another site")
		}
		return nil
	}}
	got, err := fetchToken(ctx, client, options)
	if err == nil {
		life := time.Duration(got.ExpiresInSeconds) * time.Second
		if life <= 0 {
			life = defaultLife
		}
		if !got.IssuedAt.IsZero() { // it may be older, and the clocks may differ
			life -= min(max(time.Since(got.IssuedAt), 0), life)
		}
		now := time.Now()
		return &authorization{header: "Bearer " + got.Token, got: now, expires: now.Add(life * 9 / 10)}, nil
	}
	refused, isRefused := errors.AsType[*RefusedError](err)
	if isRefused && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) {
		return nil, refused
	}
	away, isAway := errors.AsType[*AwayError](err)
	if !isAway {
		away = &AwayError{cause: errors.New(server + " sent no token")}
		failed, isURL := errors.AsType[*url.Error](err)
		switch cause := context.Cause(ctx); {
		case cause != nil:
			away.cause = cause
		case isRefused: // for another reason than who asks
			away.cause = fmt.Errorf("%s answered %d", server, refused.Status)
		case isURL:
			away.cause = withoutURL(failed)
		}
	}
	away.noToken = true
	if away.RetryAfter > 0 || away.limited {
		a.failures.add(server, away)
	}
	return nil, away
}

// fetchToken asks like containerd: with GET, or with POST for a refresh token and for a server that
// knows no GET.
func fetchToken(ctx context.Context, client *http.Client, options auth.TokenOptions) (*auth.FetchTokenResponse, error) {
	var got *auth.FetchTokenResponse
	var err error
	if options.Username != "" || options.Secret == "" {
		got, err = auth.FetchToken(ctx, client, http.Header{"User-Agent": {userAgent}}, options)
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || options.Secret == "" || refused.Status != http.StatusNotFound && refused.Status != http.StatusMethodNotAllowed {
			return got, err
		}
	}
	posted, err := auth.FetchTokenWithOAuth(ctx, client, http.Header{"User-Agent": {userAgent}}, "registry-cache", options)
	if err != nil {
		return nil, err
	}
	return &auth.FetchTokenResponse{Token: posted.AccessToken, ExpiresInSeconds: posted.ExpiresInSeconds, IssuedAt: posted.IssuedAt}, nil
}

// tokenWire turns the answers of token servers into verdicts, without their documents.
type tokenWire struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w tokenWire) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch status := response.StatusCode; {
	case status < 300:
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, largestToken), response.Body}
		return response, nil
	case status < 400:
		return response, nil
	case isRefusal(status):
		return nil, errors.Join(&RefusedError{Status: status}, response.Body.Close())
	}
	err = verdict(response)
	away, _ := errors.AsType[*AwayError](err)
	away.cause = errors.New("token server " + request.URL.Host + ": " + away.cause.Error())
	away.limited = response.StatusCode == http.StatusTooManyRequests
	return nil, away
}
