package namespace

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/distribution/distribution/v3/registry/api/errcode"

	"github.com/gardener-extensions/registry-cache/registry/fetch"
	"github.com/gardener-extensions/registry-cache/registry/peer"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// The errors that make every containerd go on to the upstream. 408 and 429 would make it ask the
// same host again, and 404 would deny what may exist.
var (
	away   = errcode.ErrorCodeUnavailable
	failed = errcode.Register("registry-cache", errcode.ErrorDescriptor{
		Value: "UPSTREAM_FAILED", Message: "the upstream failed", HTTPStatusCode: http.StatusBadGateway,
	})
	late = errcode.Register("registry-cache", errcode.ErrorDescriptor{
		Value: "UPSTREAM_LATE", Message: "the upstream did not answer in time", HTTPStatusCode: http.StatusGatewayTimeout,
	})
)

const retryAfter = time.Second

// answer returns the error for a client: unknown if the upstream does not have the object.
func answer(ctx context.Context, err error, unknown errcode.ErrorCode) error {
	if errors.Is(err, peer.ErrNotHere) {
		return unknown // another replica asks
	}
	e := of(ctx)
	e.err = err
	code, wait := failed, retryAfter
	open, isOpen := errors.AsType[*upstream.AwayError](err)
	status, answered := errors.AsType[*upstream.StatusError](err)
	switch {
	case isOpen:
		code, wait = away, open.RetryAfter
	case answered && status.Status == http.StatusNotFound:
		return unknown.WithDetail(err.Error())
	case errors.Is(err, fetch.ErrOutOfReach):
		code = away
	case answered:
		wait = max(wait, status.RetryAfter)
	case errors.Is(err, upstream.ErrLate), errors.Is(err, context.DeadlineExceeded):
		code = late
	}
	e.writer.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	return code.WithDetail(err.Error())
}
