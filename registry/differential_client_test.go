package registry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	remoteserrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/containerd/containerd/v2/core/transfer"
	"github.com/containerd/errdefs"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Kinds of outcomes of a pull. A refusal with another status has a kind like "status 412".
const (
	diffOK      = "ok"
	diffMissing = "missing"
	diffDenied  = "denied"
	diffBroken  = "broken" // a transport error, 408, 429, 5xx, or wrong content
)

// diffOutcome is the result of a client.
type diffOutcome struct {
	kind   string
	desc   v1.Descriptor // the result of resolve
	body   []byte
	err    error
	status int
	header http.Header
}

// String returns a short description.
func (o diffOutcome) String() string {
	switch {
	case o.status != 0:
		return fmt.Sprintf("%d with %d bytes %.60q, %v", o.status, len(o.body), o.body, o.err)
	case o.kind == diffOK && o.desc.Digest != "":
		return fmt.Sprintf("%.19s of %d bytes, %s", o.desc.Digest, o.desc.Size, o.desc.MediaType)
	case o.kind == diffOK:
		return fmt.Sprintf("%d bytes", len(o.body))
	}
	return fmt.Sprintf("%s: %.300v", o.kind, o.err)
}

// diffKind classifies an error of containerd's client.
func diffKind(err error) string {
	var status remoteserrors.ErrUnexpectedStatus
	unexpected := errors.As(err, &status)
	switch {
	case err == nil:
		return diffOK
	case unexpected && (status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden),
		errors.Is(err, docker.ErrInvalidAuthorization):
		return diffDenied
	case strings.Contains(err.Error(), "failed to authorize"):
		return diffBroken
	case unexpected && status.StatusCode == http.StatusNotFound, errdefs.IsNotFound(err):
		return diffMissing
	case unexpected && status.StatusCode < 500 && status.StatusCode != http.StatusTooManyRequests &&
		status.StatusCode != http.StatusRequestTimeout && status.StatusCode != http.StatusRequestedRangeNotSatisfiable:
		return "status " + strconv.Itoa(status.StatusCode)
	}
	return diffBroken
}

// resolver returns containerd's client, with or without the cache in front of the upstream.
func (w *diffWorld) resolver(transport *http.Transport, cache bool) remotes.Resolver {
	client := &http.Client{Transport: transport}
	credentials := func(host string) (string, string, error) {
		if w.Login && host == w.host {
			return diffUser, diffPassword, nil
		}
		return "", "", nil
	}
	authorizer := docker.NewDockerAuthorizer(docker.WithAuthClient(client), docker.WithAuthCreds(credentials))
	var hosts []docker.RegistryHost
	for _, host := range []string{diffCache, w.host} {
		if host == w.host || cache {
			hosts = append(hosts, docker.RegistryHost{
				Client: client, Authorizer: authorizer, Scheme: "http", Host: host, Path: "/v2",
				Capabilities: docker.HostCapabilityPull | docker.HostCapabilityResolve,
			})
		}
	}
	return docker.NewResolver(docker.ResolverOptions{
		Hosts: func(string) ([]docker.RegistryHost, error) { return hosts, nil },
	})
}

// diffPatience is how long a client waits for an upstream or a cache. A cache may itself wait for
// the upstream.
const (
	diffPatience      = time.Minute
	diffPatienceCache = 5 * time.Minute
)

// pull performs the action with containerd's client.
func (w *diffWorld) pull(a diffAction, cache bool) (o diffOutcome) {
	patience := diffPatience
	if cache {
		patience = diffPatienceCache
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	transport := &http.Transport{DialContext: w.dialNode}
	defer transport.CloseIdleConnections()
	resolver := w.resolver(transport, cache)
	defer func() {
		o.kind = diffKind(o.err)
		w.check(a, &o)
	}()
	name := w.host + "/" + a.Repo
	if a.Do == "resolve" {
		ref := name + ":" + a.Ref
		if !w.library.tag(a.Ref) {
			ref = name + "@" + diffObjects()[a.Ref].digest.String()
		}
		_, o.desc, o.err = resolver.Resolve(ctx, ref)
		return o
	}
	if a.Do == "chunks" {
		resolver.(remotes.ResolverWithOptions).SetOptions(transfer.WithConcurrentLayerFetchBuffer(8192), transfer.WithMaxConcurrentDownloads(4))
	}
	object := diffObjects()[a.Ref]
	fetcher, err := resolver.Fetcher(ctx, name+"@"+object.digest.String())
	if err != nil {
		o.err = err
		return o
	}
	body, err := fetcher.Fetch(ctx, v1.Descriptor{MediaType: object.media, Digest: object.digest, Size: int64(len(object.content))})
	if err != nil {
		o.err = err
		return o
	}
	defer body.Close()
	if a.From > 0 {
		if _, o.err = body.(io.Seeker).Seek(int64(a.From), io.SeekStart); o.err != nil {
			return o
		}
	}
	o.body, o.err = io.ReadAll(body)
	return o
}

// check does what containerd does with the result: content must match its digest, and its media
// type must be usable.
func (w *diffWorld) check(a diffAction, o *diffOutcome) {
	if o.kind != diffOK {
		return
	}
	broken := func(format string, arguments ...any) {
		o.kind, o.err = diffBroken, fmt.Errorf(format, arguments...)
	}
	if a.Do != "resolve" {
		if want := diffObjects()[a.Ref].content[a.From:]; string(want) != string(o.body) {
			broken("%d bytes with the wrong digest, want %d", len(o.body), len(want))
		}
		return
	}
	var is *diffObject
	for _, object := range diffObjects() {
		if object.digest == o.desc.Digest {
			is = &object
		}
	}
	switch {
	case is == nil || w.library.tag(a.Ref) && !w.library.was(a.Repo, a.Ref, o.desc.Digest):
		broken("digest %s of nothing", o.desc.Digest)
	case o.desc.Size != int64(len(is.content)):
		broken("size %d, want %d", o.desc.Size, len(is.content))
	case is.kind == "manifests" && !diffUsable(o.desc.MediaType):
		broken("unusable media type %q", o.desc.MediaType)
	}
}

func diffUsable(media string) bool {
	switch media {
	case v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, diffDockerType, "application/vnd.docker.distribution.manifest.list.v2+json":
		return true
	}
	return false
}

// ask sends a request to the cache only. It disconnects after leave bytes, unless leave is
// negative.
func (w *diffWorld) ask(method, path string, header http.Header, leave int) (o diffOutcome) {
	ctx, cancel := context.WithTimeout(context.Background(), diffPatienceCache)
	defer cancel()
	transport := &http.Transport{DialContext: w.dialNode, DisableCompression: true}
	defer transport.CloseIdleConnections()
	target := "http://" + diffCache + "/v2/" + path + "?ns=" + url.QueryEscape(w.host)
	request, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return diffOutcome{err: err}
	}
	for key, values := range header {
		request.Header[key] = values
	}
	if leave == 0 {
		time.AfterFunc(20*time.Millisecond, cancel)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return diffOutcome{err: err}
	}
	defer response.Body.Close()
	o.status, o.header = response.StatusCode, response.Header
	if leave >= 0 {
		o.body, _ = io.ReadAll(io.LimitReader(response.Body, int64(leave)))
		o.err = context.Canceled
		return o
	}
	o.body, o.err = io.ReadAll(response.Body)
	if response.Header.Get("Content-Encoding") == "gzip" && o.err == nil && method == http.MethodGet {
		var content io.Reader
		if content, o.err = gzip.NewReader(bytes.NewReader(o.body)); o.err == nil {
			o.body, o.err = io.ReadAll(content)
		}
	}
	if method == http.MethodHead && o.err == nil && response.ContentLength >= 0 {
		o.header.Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
	}
	return o
}

// path returns the requested path.
func (w *diffWorld) path(a diffAction) string {
	kind, ref := "manifests", a.Ref
	if a.Do != "resolve" || !w.library.tag(a.Ref) {
		object := diffObjects()[a.Ref]
		kind, ref = object.kind, object.digest.String()
	}
	return a.Repo + "/" + kind + "/" + ref
}

// alone performs the action with a client that uses only the cache.
func (w *diffWorld) alone(a diffAction, method string) diffOutcome {
	header := http.Header{"Accept": {strings.Join([]string{
		diffDockerType, "application/vnd.docker.distribution.manifest.list.v2+json", v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, "*/*",
	}, ", ")}}
	if a.From > 0 {
		header.Set("Range", "bytes="+strconv.Itoa(a.From)+"-")
	}
	return w.ask(method, w.path(a), header, -1)
}
