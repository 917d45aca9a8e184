package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// leastRetryAfter is what Retry-After says when the upstream does not.
const leastRetryAfter = time.Second

// refuse answers with an error document (distribution-spec, error codes).
func (e *exchange) refuse(status int, code, message string) {
	type one struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	content, _ := json.Marshal(map[string][]one{"errors": {{code, message}}}) //nolint:errchkjson // strings only
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

// fail answers why the upstream's object is not served. A refusal is the upstream's own. The other
// answers make every containerd go on to the upstream: 408 and 429 would make it ask this host
// again, and 404 would deny what may exist.
func (e *exchange) fail(err error, unknown string) {
	e.err = err
	refused, isRefused := errors.AsType[*upstream.RefusedError](err)
	away, isAway := errors.AsType[*upstream.AwayError](err)
	switch {
	case errors.Is(err, cache.ErrNotHere):
		e.err = nil
		e.refuse(http.StatusNotFound, unknown, err.Error()) // another replica asks
	case isRefused:
		e.err = nil
		if refused.ContentRange != "" {
			e.writer.Header().Set("Content-Range", refused.ContentRange)
		}
		if refused.Document != nil {
			e.send(refused.Status, refused.Document)
			return
		}
		codes := map[int]string{http.StatusUnauthorized: "UNAUTHORIZED", http.StatusForbidden: "DENIED", http.StatusNotFound: unknown}
		e.refuse(refused.Status, cmp.Or(codes[refused.Status], "UNSUPPORTED"), err.Error())
	case errors.Is(err, upstream.ErrLate) && (!isAway || !away.Remembered), errors.Is(err, context.DeadlineExceeded):
		e.retry(http.StatusGatewayTimeout, "UPSTREAM_LATE", leastRetryAfter)
	case isAway && away.Remembered:
		e.retry(http.StatusServiceUnavailable, "UNAVAILABLE", away.RetryAfter)
	case isAway:
		e.retry(http.StatusBadGateway, "UPSTREAM_FAILED", away.RetryAfter)
	case errors.Is(err, cache.ErrBusy), store.IsSlow(err):
		e.retry(http.StatusServiceUnavailable, "UNAVAILABLE", leastRetryAfter)
	default:
		e.retry(http.StatusBadGateway, "UPSTREAM_FAILED", leastRetryAfter)
	}
}

func (e *exchange) retry(status int, code string, wait time.Duration) {
	seconds := math.Ceil(max(wait, leastRetryAfter).Seconds())
	e.writer.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	e.refuse(status, code, e.err.Error())
}
