package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// handler is the pull part of the OCI distribution-spec for one upstream.
type handler struct {
	cache    *cache.Cache
	upstream string
	headers  http.Header // of all answers
	patience time.Duration
	healthy  func() error
	works    func() context.Context // ends when the disk hangs
	large    chan struct{}          // a slot for each large manifest that is sent
}

const (
	// largeManifest is the size from which a manifest needs a slot: each is in memory until its
	// client has read it.
	largeManifest = 64 << 10
	mostLarge     = 16
)

// Paths end in /<kind>/<reference>; what is before it names the repository.
const (
	base      = "base"
	blobs     = "blobs"
	manifests = "manifests"
)

// exchange is a request and its answer.
type exchange struct {
	*http.Request
	writer *writer
	kind   string // base, blob, manifest, or empty
	query  cache.Query
	from   cache.From
	err    error // why the upstream's object is not served
}

// ServeHTTP implements http.Handler. It logs and counts all but the requests of nodes that only ask
// whether the cache answers, which it counts.
//
//nolint:contextcheck // the context of the disk is no context of a request
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if works := h.works(); works.Err() == nil {
		defer context.AfterFunc(works, func() { // nothing else ends a read of a disk that hangs
			cancel(context.Cause(works))
			cut(r.Context())
		})()
	}
	e := &exchange{
		Request: r.WithContext(ctx), writer: &writer{ResponseWriter: w, patience: h.patience, status: http.StatusOK},
		query: cache.Query{Range: r.Header.Get("Range"), Stored: r.Header.Get(upstream.ReplicaHeader) != ""},
	}
	maps.Copy(w.Header(), h.headers)
	e.writer.extend()
	start := time.Now()
	defer func() { e.completed(time.Since(start)) }()
	h.route(e)
}

// route refuses what a cache does not serve. For another registry the answer is 404, so that
// containerd goes on: a node that still knows the address of a deleted cache may reach this one.
func (h *handler) route(e *exchange) {
	path, isAPI := strings.CutPrefix(e.URL.Path, "/v2/")
	name, kind, object := split(path)
	wanted := e.URL.Query().Get("ns") // containerd: the registry in the reference of the image
	switch {
	case !isAPI && e.URL.Path != "/v2":
		e.refuse(http.StatusNotFound, "UNSUPPORTED", "a cache serves /v2/ only")
	case wanted != "" && h.upstream != "" && wanted != h.upstream:
		e.refuse(http.StatusNotFound, "NAME_UNKNOWN", fmt.Sprintf("this is a cache of %s, not of %s", h.upstream, wanted))
	case e.Method != http.MethodGet && e.Method != http.MethodHead:
		e.refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "a cache is read-only")
	case path == "" || !isAPI:
		h.serveBase(e)
	case path == "_catalog" || strings.HasSuffix(path, "/tags/list") || strings.Contains(path, "/blobs/uploads/"):
		e.refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "a cache serves blobs and manifests: ask the upstream")
	case kind == blobs:
		h.serveBlobs(e, name, object)
	case kind == manifests:
		h.serveManifests(e, name, object)
	default:
		e.refuse(http.StatusNotFound, "UNSUPPORTED", "a cache serves blobs and manifests only")
	}
}

// split splits <name>/<kind>/<object>.
func split(path string) (name, kind, object string) {
	end := strings.LastIndexByte(path, '/')
	if end < 0 {
		return path, "", ""
	}
	before := strings.LastIndexByte(path[:end], '/')
	if before < 0 {
		return path[:end], "", path[end+1:]
	}
	return path[:before], path[before+1 : end], path[end+1:]
}

func (h *handler) serveBase(e *exchange) {
	e.kind = base
	if err := h.healthy(); err != nil {
		e.err = err
		e.refuse(http.StatusServiceUnavailable, "UNAVAILABLE", err.Error())
		return
	}
	e.writer.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(e.writer, "{}")
}

// named sets the repository of the request, and reports whether its name is valid.
func (e *exchange) named(kind, name string) bool {
	e.kind, e.query.Repository = kind, name
	named, err := reference.WithName(name)
	if err != nil || named.Name() != name {
		e.kind = ""
		e.refuse(http.StatusBadRequest, "NAME_INVALID", "the name of the repository is invalid")
		return false
	}
	return true
}

func (h *handler) serveBlobs(e *exchange, name, object string) {
	blob, err := digest.Parse(object)
	if !e.named("blob", name) {
		return
	}
	if err != nil {
		e.refuse(http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	find := h.cache.Blob
	if e.Method == http.MethodHead {
		find = h.cache.Stat
	}
	found, err := find(e.Context(), e.query, blob)
	e.served(found.From)
	if err != nil {
		e.fail(err, "BLOB_UNKNOWN")
		return
	}
	defer func() { _ = found.Close() }()
	e.sendBlob(blob, found)
}

func (h *handler) serveManifests(e *exchange, name, object string) {
	if !e.named("manifest", name) {
		return
	}
	var found cache.Manifest
	blob, err := digest.Parse(object)
	switch {
	case err == nil:
		found, err = h.cache.Manifest(e.Context(), e.query, blob)
	case strings.Contains(object, ":"):
		e.refuse(http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	case !reference.TagRegexp.MatchString(object) || len(object) != len(reference.TagRegexp.FindString(object)):
		e.refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", "this is no tag")
		return
	default:
		found, err = h.cache.Tag(e.Context(), e.query, object)
	}
	e.served(found.From)
	if err != nil {
		e.fail(err, "MANIFEST_UNKNOWN")
		return
	}
	if len(found.Content) > largeManifest {
		select {
		case h.large <- struct{}{}:
			defer func() { <-h.large }()
		default:
			e.fail(cache.ErrBusy, "MANIFEST_UNKNOWN")
			return
		}
	}
	header := e.writer.Header()
	if found.From == cache.FromStale {
		header.Set("Warning", `110 registry-cache "Response is Stale"`)
	}
	header["Content-Type"] = []string{found.MediaType}
	if found.MediaType == "" {
		header["Content-Type"] = nil // as the upstream
	}
	etag := strconv.Quote(found.Digest.String())
	header.Set("Docker-Content-Digest", found.Digest.String())
	header.Set("Etag", etag)
	header.Set("Content-Length", strconv.Itoa(len(found.Content)))
	if strings.Contains(e.Header.Get("If-None-Match"), etag) {
		header.Del("Content-Length")
		e.writer.WriteHeader(http.StatusNotModified)
	} else if e.Method != http.MethodHead {
		_, _ = e.writer.Write(found.Content)
	}
}

// served notes from where an object is served.
func (e *exchange) served(from cache.From) {
	e.from = from
	if e.query.Stored {
		return // metrics count what nodes ask for
	}
	metrics.Requests.WithLabelValues(e.kind).Inc()
	if from == cache.FromVolume {
		metrics.Hits.WithLabelValues(e.kind).Inc()
	} else {
		metrics.Misses.WithLabelValues(e.kind).Inc()
	}
}

// completed counts the answer, and writes the line of the access log. Its message and keys are
// those of distribution.
func (e *exchange) completed(took time.Duration) {
	handler, method := e.kind, strings.ToLower(e.Method)
	if method != "get" && method != "head" {
		method = "other" // clients may invent more
	}
	if handler == "" {
		handler = "other"
	}
	metrics.Answers.WithLabelValues(handler, method, strconv.Itoa(e.writer.status)).Inc()
	metrics.Duration.WithLabelValues(handler, method).Observe(took.Seconds())
	if e.kind == base {
		return
	}
	if e.kind != "" && !e.query.Stored {
		metrics.Pushed.WithLabelValues(e.kind).Add(float64(e.writer.written))
	}
	line := []any{
		"http.request.method", e.Method, "http.request.uri", e.URL.RequestURI(),
		"http.request.remoteaddr", e.RemoteAddr, "http.request.useragent", e.UserAgent(),
		"http.response.status", e.writer.status, "http.response.written", e.writer.written,
		"http.response.duration", took, "from", string(e.from),
	}
	if e.err == nil {
		slog.InfoContext(e.Context(), "response completed", line...)
		return
	}
	level := slog.LevelError
	if errors.Is(context.Cause(e.Context()), context.Canceled) {
		level = slog.LevelInfo // the client has gone
	}
	slog.Log(e.Context(), level, "response completed with error", append(line, "err.message", e.err.Error())...)
}
