package upstream

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"

	"github.com/containerd/containerd/v2/core/remotes/docker/auth"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
)

// mostTokens bounds the repositories whose token is kept.
const mostTokens = 1000

type repositoryKey struct{}

// tokenError says that there is no token for a repository.
type tokenError struct{ cause error }

// Error implements error.
func (e *tokenError) Error() string { return "getting a token: " + e.cause.Error() }

func (e *tokenError) Unwrap() error { return e.cause }

// tokens is a transport that authenticates as the upstream demands. It asks for a token when the
// upstream refuses a request of a repository: once for all requests of that time.
type tokens struct {
	base     http.RoundTripper
	scheme   string // of the upstream; that of registry is a guess
	registry name.Registry
	auth     authn.Authenticator

	getting singleflight.Group
	known   *lru.Cache[string, string] // the header Authorization, by repository
}

func newTokens(base http.RoundTripper, scheme string, registry name.Registry, auth authn.Authenticator) *tokens {
	known, _ := lru.New[string, string](mostTokens) // fails for a size of 0
	return &tokens{base: base, scheme: scheme, registry: registry, auth: auth, known: known}
}

// RoundTrip implements http.RoundTripper. It authenticates only to the upstream itself.
func (t *tokens) RoundTrip(request *http.Request) (*http.Response, error) {
	repository, _ := request.Context().Value(repositoryKey{}).(string)
	if repository == "" || request.URL.Host != t.registry.RegistryStr() || request.URL.Scheme != t.scheme {
		return t.base.RoundTrip(request)
	}
	used, _ := t.known.Get(repository)
	response, err := t.authorized(request, used)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	now, _ := t.known.Get(repository)
	if now == used { // no other request has got a new one meanwhile
		now, err = t.get(request.Context(), repository, response)
	}
	if err == nil && now == "" {
		return response, nil
	}
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, &tokenError{err}
	}
	return t.authorized(request, now)
}

func (t *tokens) authorized(request *http.Request, authorization string) (*http.Response, error) {
	if authorization != "" {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", authorization)
	}
	return t.base.RoundTrip(request)
}

// get returns the header Authorization that answers the challenge, or "" if the challenge has no
// known scheme.
func (t *tokens) get(ctx context.Context, repository string, response *http.Response) (string, error) {
	var challenge *auth.Challenge
	for _, one := range auth.ParseAuthHeader(response.Header) {
		if one.Scheme == auth.BearerAuth || one.Scheme == auth.BasicAuth && t.auth != authn.Anonymous {
			challenge = &one
			break
		}
	}
	if challenge == nil {
		return "", nil
	}
	getting := t.getting.DoChan(repository, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
		defer cancel()
		authorization, err := t.answer(ctx, repository, challenge)
		if err == nil {
			t.known.Add(repository, authorization)
		}
		return authorization, err
	})
	select {
	case got := <-getting:
		authorization, _ := got.Val.(string)
		return authorization, got.Err
	case <-ctx.Done():
		t.getting.Forget(repository) // the next request may have more luck
		return "", errors.Join(errors.New("waiting for the token server"), context.Cause(ctx))
	}
}

// answer answers a challenge. A token server that refuses the repository is a *StatusError.
func (t *tokens) answer(ctx context.Context, repository string, challenge *auth.Challenge) (string, error) {
	if challenge.Scheme == auth.BasicAuth {
		config, err := authn.Authorization(ctx, t.auth)
		if err != nil {
			return "", err
		}
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(config.Username+":"+config.Password)), nil
	}
	bearer := &transport.Challenge{Scheme: "bearer", Parameters: challenge.Parameters, Insecure: t.scheme == "http"}
	scope := t.registry.Repo(repository).Scope(transport.PullScope)
	token, err := transport.Exchange(ctx, t.registry, t.auth, t.base, []string{scope}, bearer)
	if refused, ok := errors.AsType[*transport.Error](err); ok &&
		(refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
		return "", &StatusError{Status: refused.StatusCode}
	}
	if err != nil {
		return "", err
	}
	return "Bearer " + cmp.Or(token.Token, token.AccessToken), nil
}
