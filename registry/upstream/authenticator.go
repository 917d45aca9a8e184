package upstream

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker/auth"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/sync/singleflight"
)

const (
	mostTokens = 1000
	// defaultLife is the lifetime of a token without expires_in (distribution, token specification).
	defaultLife = time.Minute
	// settled is the age of a token above which any refusal may be due to that token.
	settled = time.Minute
	// redirects is the maximum number of redirects, as in net/http.
	redirects = 10
)

// authorization is the Authorization header for a host and a repository, with what renews it.
type authorization struct {
	header       string
	password     string // the password in header, if any
	withheld     bool   // the token server did not get the existing credentials
	challenge    auth.Challenge
	got, expires time.Time
}

// none is the authorization for a host before its first challenge.
var none = &authorization{}

// authenticator is a transport that answers challenges. It sends the credentials only to the
// upstream and to token servers in its registrable domain (CVE-2026-33540). Other token servers,
// and those of redirect targets, are asked anonymously. A redirect target receives the upstream's
// authorization only if it demands one, and if net/http, and thus containerd, would pass it on.
//
// It fetches tokens with containerd's package core/remotes/docker/auth. It does not use
// containerd's authorizer, which would keep a failed token request forever, and make all requests
// depend on the context of the first one.
type authenticator struct {
	wires       http.RoundTripper
	upstream    *url.URL
	credentials func(ctx context.Context, refused string) (username, password string, err error) // may be nil
	failures    *failures

	asking singleflight.Group
	known  *lru.Cache[string, *authorization] // by host and repository
}

// RoundTrip implements http.RoundTripper.
func (a *authenticator) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	o, ok := ctx.Value(objectKey{}).(*object)
	if !ok { // the root of the API
		return a.wires.RoundTrip(request)
	}
	key := request.URL.Scheme + "://" + request.URL.Host + " " + o.repository
	used, _ := a.known.Get(key)
	if used != nil && time.Now().After(used.expires) {
		used, _ = a.renew(ctx, key, used.challenge, none) // on failure, the challenge is answered again below
	}
	used = cmp.Or(used, none)
	response, err := a.send(request, used)
	own, isKnown := a.known.Get(a.upstream.Scheme + "://" + a.upstream.Host + " " + o.repository)
	if err == nil && response.StatusCode == http.StatusUnauthorized && used == none && isKnown && a.isBelow(request.URL) {
		_ = response.Body.Close()
		response, err = a.send(request, own)
	}
	if err != nil || !used.mayBeRefused(response.StatusCode) {
		return response, err
	}
	challenge := a.challenge(response.Header, request.URL, used.challenge)
	if challenge.Scheme == 0 {
		return response, nil
	}
	now, err := a.renew(ctx, key, challenge, used)
	if err == nil && now.header == used.header || err != nil && used != none && response.StatusCode != http.StatusUnauthorized {
		return response, nil // the token may be valid, and the refusal final
	}
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	return a.send(request, now)
}

func (a *authenticator) send(request *http.Request, with *authorization) (*http.Response, error) {
	if with != none {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", with.header)
	}
	response, err := a.wires.RoundTrip(request)
	if err == nil && with.withheld && isDenial(response.StatusCode) {
		return nil, errors.Join(&AwayError{cause: errWithheld}, response.Body.Close())
	}
	return response, err
}

// errWithheld is not a refusal: a client with the same credentials may get the object.
var errWithheld = errors.New("the token server is on another site than the upstream, or does not use TLS: it gets no credentials")

// isDenial reports whether the credentials may be the reason for a status.
func isDenial(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// mayBeRefused reports whether another token may change the answer. Most registries answer 401 for
// an expired token, public.ecr.aws answers 400, and some others answer 403, as Amazon ECR does for
// an expired password. Some registries answer 404 to hide what a token does not allow.
func (a *authorization) mayBeRefused(status int) bool {
	if a == none || status == http.StatusUnauthorized {
		return status == http.StatusUnauthorized
	}
	often := status == http.StatusBadRequest || status == http.StatusForbidden
	return often || isRefusal(status) && time.Since(a.got) > settled
}

// challenge returns the first challenge that can be answered, or else last.
func (a *authenticator) challenge(header http.Header, of *url.URL, last auth.Challenge) auth.Challenge {
	for _, one := range auth.ParseAuthHeader(header) {
		if one.Scheme == auth.BearerAuth || one.Scheme == auth.BasicAuth && a.credentials != nil && a.isUpstream(of) {
			return one
		}
	}
	return last
}

func (a *authenticator) isUpstream(target *url.URL) bool {
	return target.Scheme == a.upstream.Scheme && target.Host == a.upstream.Host
}

// renew replaces a refused authorization, once for all concurrent callers. Its errors are
// *RefusedError or *AwayError.
func (a *authenticator) renew(ctx context.Context, key string, challenge auth.Challenge, refused *authorization) (*authorization, error) {
	getting := a.asking.DoChan(key, func() (any, error) {
		if now, _ := a.known.Get(key); now != nil && now != refused && time.Now().Before(now.expires) {
			return now, nil // another request got it meanwhile
		}
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), longest, ErrLate)
		defer cancel()
		now, err := a.answer(ctx, key, challenge, refused)
		if err == nil {
			a.known.Add(key, now)
		}
		return now, err
	})
	if o, ok := ctx.Value(objectKey{}).(*object); ok {
		o.token.Store(&key)
		defer o.token.Store(nil)
	}
	select {
	case got := <-getting:
		now, _ := got.Val.(*authorization)
		return now, got.Err
	case <-ctx.Done():
		return nil, &AwayError{noToken: true, cause: context.Cause(ctx)}
	}
}

// answer returns an authorization that answers the challenge.
func (a *authenticator) answer(ctx context.Context, key string, challenge auth.Challenge, refused *authorization) (*authorization, error) {
	host, repository, _ := strings.Cut(key, " ")
	of, _ := url.Parse(host)
	var username, password string
	if a.credentials != nil && a.isUpstream(of) {
		var err error
		if username, password, err = a.credentials(ctx, refused.password); err != nil {
			return nil, &AwayError{noToken: true, cause: err}
		}
	}
	if challenge.Scheme == auth.BasicAuth {
		header := "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))
		now := time.Now()
		return &authorization{header: header, password: password, challenge: challenge, got: now, expires: now.Add(2 * settled)}, nil
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
	if _, isRefused := errors.AsType[*RefusedError](err); isRefused && withheld {
		err = &AwayError{noToken: true, cause: errWithheld}
	}
	if err != nil {
		return nil, err
	}
	life := cmp.Or(time.Duration(min(max(got.ExpiresInSeconds, 0), 1e9))*time.Second, defaultLife)
	if !got.IssuedAt.IsZero() { // the token may be cached, and the clocks may differ
		life -= min(max(time.Since(got.IssuedAt), 0), life)
	}
	now := time.Now()
	return &authorization{
		header: "Bearer " + got.Token, withheld: withheld, challenge: challenge, got: now, expires: now.Add(life * 9 / 10),
	}, nil
}

// trusts reports whether a token server may get the credentials: it shares the upstream's host or
// registrable domain, and uses TLS if the upstream does.
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

// isBelow reports whether a trusted host is the upstream's, on any port, or a subdomain of it.
func (a *authenticator) isBelow(host *url.URL) bool {
	return a.trusts(host) && strings.HasSuffix("."+host.Hostname(), "."+a.upstream.Hostname())
}

// token requests a token. Its errors contain only the status and Retry-After of an answer.
func (a *authenticator) token(ctx context.Context, realm *url.URL, options auth.TokenOptions) (*auth.FetchTokenResponse, error) {
	server := "token server " + realm.Host
	if err := a.failures.check(server); err != nil {
		return nil, err
	}
	client := &http.Client{Transport: discreet{a.wires, true}, CheckRedirect: func(next *http.Request, earlier []*http.Request) error {
		if len(earlier) >= redirects {
			return &AwayError{cause: fmt.Errorf("more than %d redirects", redirects)}
		}
		if options.Secret != "" && !a.trusts(next.URL) {
			return &AwayError{cause: errors.New("it redirects to another site")}
		}
		return nil
	}}
	got, err := fetchToken(ctx, client, options)
	if err == nil {
		return got, nil
	}
	refused, isRefused := errors.AsType[*RefusedError](err)
	away, isAway := errors.AsType[*AwayError](err)
	switch {
	case isRefused && isDenial(refused.Status):
		return nil, &RefusedError{Status: refused.Status}
	case isRefused: // not because of the credentials
		away = &AwayError{cause: errors.New(refused.Error())}
	case !isAway:
		away = &AwayError{cause: cmp.Or(context.Cause(ctx), errors.New("it sent no token"))}
	}
	limits := away.RetryAfter > 0 || away.status == http.StatusTooManyRequests
	away = &AwayError{RetryAfter: away.RetryAfter, noToken: true, cause: fmt.Errorf("%s: %w", server, away.cause)}
	if limits {
		a.failures.add(server, away)
	}
	return nil, away
}

// fetchToken requests a token with containerd's client: with POST if the secret is a refresh token,
// or if the server does not support GET; otherwise with GET.
func fetchToken(ctx context.Context, client *http.Client, options auth.TokenOptions) (*auth.FetchTokenResponse, error) {
	if options.Username != "" || options.Secret == "" {
		got, err := auth.FetchToken(ctx, client, named, options)
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || options.Secret == "" || refused.Status != http.StatusNotFound && refused.Status != http.StatusMethodNotAllowed {
			return got, err
		}
	}
	posted, err := auth.FetchTokenWithOAuth(ctx, client, named, "registry-cache", options)
	if err != nil {
		return nil, err
	}
	return &auth.FetchTokenResponse{Token: posted.AccessToken, ExpiresInSeconds: posted.ExpiresInSeconds, IssuedAt: posted.IssuedAt}, nil
}
