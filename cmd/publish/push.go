package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// content is an image index or an artifact.
type content interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// item is content and its tag. The SBOMs refer to parts of the content.
type item struct {
	tag     name.Tag
	content content
	sboms   []artifact
}

// push uploads everything whose tag does not exist yet, and then sets the tags in order. It uses
// the credentials of `docker login`.
func push(ctx context.Context, items []item, progress io.Writer, options ...remote.Option) error {
	options = append([]remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(encrypted{remote.DefaultTransport}),
	}, options...)
	pusher, err := remote.NewPusher(options...)
	if err != nil {
		return fmt.Errorf("configure the push: %w", err)
	}
	var missing []item
	for _, item := range items {
		exists, err := item.exists(options)
		if err != nil {
			return err
		}
		if !exists {
			missing = append(missing, item)
		}
	}
	for _, item := range missing {
		fmt.Fprintf(progress, "push %s\n", item.tag)
		if err := item.upload(ctx, pusher); err != nil {
			return classify(fmt.Errorf("push %s: %w", item.tag, err))
		}
	}
	for _, item := range missing {
		if err := pusher.Put(ctx, item.tag, item.content); err != nil {
			return classify(fmt.Errorf("tag %s: %w", item.tag, err))
		}
	}
	return nil
}

// exists returns whether the content has its tag. It returns an error if the tag must not move.
func (i item) exists(options []remote.Option) (bool, error) {
	published, err := remote.Head(i.tag, options...)
	if status := (*transport.Error)(nil); errors.As(err, &status) &&
		(status.StatusCode == http.StatusNotFound || status.StatusCode == http.StatusForbidden) { // some registries answer 403 instead of 404
		return false, nil
	}
	if err != nil {
		return false, classify(fmt.Errorf("look for %s: %w", i.tag, err))
	}
	digest, err := i.content.Digest()
	if err != nil {
		return false, err
	}
	if published.Digest != digest && !strings.HasSuffix(i.tag.TagStr(), "-dev") {
		return false, fmt.Errorf("%s was published with other content (%s, now %s); raise VERSION", i.tag, published.Digest, digest)
	}
	return published.Digest == digest, nil
}

func (i item) upload(ctx context.Context, pusher *remote.Pusher) error {
	repository := i.tag.Repository
	if a, ok := i.content.(artifact); ok {
		return a.push(ctx, pusher, repository)
	}
	digest, err := i.content.Digest()
	if err != nil {
		return err
	}
	if err := pusher.Push(ctx, repository.Digest(digest.String()), i.content); err != nil {
		return err
	}
	for _, sbom := range i.sboms {
		if err := sbom.push(ctx, pusher, repository); err != nil {
			return err
		}
	}
	return nil
}

// classify marks an error that may pass as an environment error: the registry cannot be reached, is
// overloaded, or does not accept the credentials.
func classify(err error) error {
	passing := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}
	if status := (*transport.Error)(nil); errors.As(err, &status) && status.StatusCode < 500 && !slices.Contains(passing, status.StatusCode) {
		return err
	}
	if program.ExitCode(err) == program.ExitUsage { // see encrypted
		return err
	}
	return program.Environment(err)
}

// encrypted refuses plain HTTP to other machines, which the library allows for private addresses
// and after redirects.
type encrypted struct{ http.RoundTripper }

func (e encrypted) RoundTrip(request *http.Request) (*http.Response, error) {
	host := request.URL.Hostname()
	if request.URL.Scheme != "https" && host != "localhost" && !strings.HasSuffix(host, ".localhost") && !net.ParseIP(host).IsLoopback() {
		return nil, program.Usage(fmt.Errorf("%s would be sent unencrypted; only localhost may use HTTP", request.URL.Redacted()))
	}
	return e.RoundTripper.RoundTrip(request)
}
