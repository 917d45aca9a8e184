package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/semaphore"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// handler implements the pull part of the OCI distribution-spec for one upstream.
type handler struct {
	cache    *cache.Cache
	upstream string
	headers  http.Header // sent with all answers
	patience time.Duration
	works    func() context.Context // returns a context that is done when the disk hangs
	large    *semaphore.Weighted    // large manifests that are being sent
}

const (
	// base is the kind of requests for /v2/.
	base = "base"
	// leastRetryAfter is the default and the minimum of Retry-After.
	leastRetryAfter = time.Second
)

// exchange is a request and its answer.
type exchange struct {
	*http.Request
	writer *writer
	kind   string // base, blob, manifest or empty
	query  cache.Query
	from   cache.From
	err    error // why the object is not served
}

// ServeHTTP implements http.Handler. It counts all requests, and logs all except probes of nodes.
//
//nolint:contextcheck // the context of the disk is not that of the request
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if works := h.works(); works.Err() == nil {
		defer context.AfterFunc(works, func() { // nothing else interrupts a read from a disk that hangs
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
	if r.ContentLength != 0 { // net/http would wait for the body before it answers
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readHeaderTimeout))
	}
	start := time.Now()
	defer func() { e.completed(time.Since(start)) }()
	h.route(e)
}

// route serves a request, or refuses what a cache does not serve. It answers 404 to a request for
// another registry, so that containerd asks the upstream: a node may still use the address of a
// deleted cache, and this cache may now have that address.
func (h *handler) route(e *exchange) {
	route, isAPI := strings.CutPrefix(e.URL.Path, "/v2/")
	rest, object := path.Split(route) // <name>/<kind>/<object>
	before, kind := path.Split(strings.TrimSuffix(rest, "/"))
	name, isNamed := strings.CutSuffix(before, "/")
	repository, invalid := reference.WithName(name)
	wanted := e.URL.Query().Get("ns") // containerd sends the registry of the image reference
	switch {
	case !isAPI && e.URL.Path != "/v2":
		e.refuse(http.StatusNotFound, "UNSUPPORTED", "a cache serves /v2/ only")
	case wanted != "" && h.upstream != "" && wanted != h.upstream:
		e.refuse(http.StatusNotFound, "NAME_UNKNOWN", fmt.Sprintf("this is a cache of %s, not of %s", h.upstream, wanted))
	case e.Method != http.MethodGet && e.Method != http.MethodHead:
		e.refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "a cache is read-only")
	case route == "" || !isAPI:
		h.serveBase(e)
	case route == "_catalog" || strings.HasSuffix(route, "/tags/list") || strings.Contains(route, "/blobs/uploads/"):
		e.refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "a cache serves blobs and manifests: ask the upstream")
	case !isNamed || kind != "blobs" && kind != "manifests":
		e.refuse(http.StatusNotFound, "UNSUPPORTED", "a cache serves blobs and manifests only")
	case invalid != nil || repository.Name() != name || len(name) > reference.RepositoryNameTotalLengthMax: // WithName limits only the path, without the host
		e.refuse(http.StatusBadRequest, "NAME_INVALID", "the name of the repository is invalid")
	case kind == "blobs":
		e.kind, e.query.Repository = "blob", name
		h.serveBlob(e, object)
	default:
		e.kind, e.query.Repository = "manifest", name
		h.serveManifest(e, object)
	}
}

func (h *handler) serveBase(e *exchange) {
	e.kind = base
	if e.err = context.Cause(h.works()); e.err != nil {
		e.refuse(http.StatusServiceUnavailable, "UNAVAILABLE", e.err.Error())
		return
	}
	e.writer.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(e.writer, "{}")
}

func (h *handler) serveBlob(e *exchange, object string) {
	blob, err := digest.Parse(object)
	if err != nil {
		e.refuse(http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	find := h.cache.Blob
	if e.Method == http.MethodHead {
		find = h.cache.Stat
	}
	found, err := find(e.Context(), e.query, blob)
	if !e.served(found.From, err) {
		return
	}
	defer func() { _ = found.Close() }()
	e.sendBlob(blob, found)
}

func (h *handler) serveManifest(e *exchange, object string) {
	var found cache.Manifest
	blob, err := digest.Parse(object)
	switch {
	case err == nil:
		found, err = h.cache.Manifest(e.Context(), e.query, blob)
	case strings.Contains(object, ":"):
		e.refuse(http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	case object == "" || reference.TagRegexp.FindString(object) != object:
		e.refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", "the tag is invalid")
		return
	default:
		found, err = h.cache.Tag(e.Context(), e.query, object)
	}
	if !e.served(found.From, err) {
		return
	}
	if len(found.Content) > cache.LargeManifest {
		if !h.large.TryAcquire(1) {
			e.fail(cache.ErrBusy)
			return
		}
		defer h.large.Release(1)
	}
	header := e.writer.Header()
	if found.From == cache.FromStale {
		header.Set("Warning", `110 registry-cache "Response is Stale"`)
	}
	header["Content-Type"] = []string{found.MediaType}
	if found.MediaType == "" {
		header["Content-Type"] = nil // the upstream sent none
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

// served records the source of an object. If err is not nil, it answers with the error and returns
// false.
func (e *exchange) served(from cache.From, err error) bool {
	e.from = from
	if !e.query.Stored { // metrics count only requests of nodes
		metrics.Requests.WithLabelValues(e.kind).Inc()
		if from == cache.FromVolume {
			metrics.Hits.WithLabelValues(e.kind).Inc()
		} else {
			metrics.Misses.WithLabelValues(e.kind).Inc()
		}
	}
	if err != nil {
		e.fail(err)
	}
	return err == nil
}

// completed counts the answer and writes a line to the access log, with distribution's message and
// keys.
func (e *exchange) completed(took time.Duration) {
	handler, method := cmp.Or(e.kind, "other"), strings.ToLower(e.Method)
	if method != "get" && method != "head" {
		method = "other" // clients may invent methods
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
	level, message := slog.LevelInfo, "response completed"
	if e.err != nil {
		message, line = "response completed with error", append(line, "err.message", e.err.Error())
		if !errors.Is(context.Cause(e.Context()), context.Canceled) { // otherwise the client left
			level = slog.LevelError
		}
	}
	slog.Log(e.Context(), level, message, line...)
}

// refuse answers with an error document (distribution-spec, error codes).
func (e *exchange) refuse(status int, code, message string) {
	content, _ := json.Marshal(map[string][]map[string]string{"errors": {{"code": code, "message": message}}}) //nolint:errchkjson // strings only
	e.send(status, content)
}

func (e *exchange) send(status int, document []byte) {
	e.writer.Header().Set("Content-Type", "application/json")
	e.writer.Header().Set("Content-Length", strconv.Itoa(len(document)))
	e.writer.WriteHeader(status)
	if e.Method != http.MethodHead {
		_, _ = e.writer.Write(document)
	}
}

// fail answers with the reason why the object is not served. If the upstream refused the request,
// fail answers with that refusal. All other answers to nodes make every containerd version go on to
// the upstream: after 408 and 429 containerd would ask the cache again, and 404 would deny an
// object that may exist.
func (e *exchange) fail(err error) {
	unknown := strings.ToUpper(e.kind) + "_UNKNOWN"
	if errors.Is(err, cache.ErrNotHere) {
		e.refuse(http.StatusNotFound, unknown, err.Error()) // only another replica gets this answer
		return
	}
	if refused, ok := errors.AsType[*upstream.RefusedError](err); ok {
		if refused.ContentRange != "" {
			e.writer.Header().Set("Content-Range", refused.ContentRange)
		}
		if refused.Document != nil {
			e.send(refused.Status, refused.Document)
			return
		}
		codes := map[int]string{http.StatusUnauthorized: "UNAUTHORIZED", http.StatusForbidden: "DENIED", http.StatusNotFound: unknown}
		e.refuse(refused.Status, cmp.Or(codes[refused.Status], "UNSUPPORTED"), err.Error())
		return
	}
	status, code, wait := http.StatusBadGateway, "UPSTREAM_FAILED", leastRetryAfter
	away, isAway := errors.AsType[*upstream.AwayError](err)
	if isAway {
		wait = max(wait, away.RetryAfter)
	}
	switch isRemembered := isAway && away.Remembered; {
	case !isRemembered && (errors.Is(err, upstream.ErrLate) || errors.Is(err, context.DeadlineExceeded)):
		status, code = http.StatusGatewayTimeout, "UPSTREAM_LATE"
	case isRemembered, errors.Is(err, cache.ErrBusy), store.IsSlow(err):
		status, code = http.StatusServiceUnavailable, "UNAVAILABLE"
	}
	e.err = err
	e.writer.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	e.refuse(status, code, err.Error())
}
