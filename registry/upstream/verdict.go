package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RefusedError is an answer with a status of 4xx except 408 and 429. It is not an outage.
type RefusedError struct {
	Status int
	// Document is the upstream's error document, reduced to codes and messages, or nil. It never
	// contains the answer of a token server.
	Document []byte
	// ContentRange is the header Content-Range of the answer, for 416.
	ContentRange string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the upstream answered %d %s", e.Status, http.StatusText(e.Status))
}

// AwayError is an outage of the upstream or its token server: no answer, 408, 429, 5xx, or an
// answer that a registry never gives.
type AwayError struct {
	// RetryAfter is how long the client should wait, at most a minute, or 0.
	RetryAfter time.Duration
	// Remembered is set if the upstream was not asked because it failed recently.
	Remembered bool

	status  int  // of the answer, or 0
	noToken bool // the reason is a missing token
	cause   error
}

// Error implements error.
func (e *AwayError) Error() string {
	if e.Remembered {
		return "the upstream is away: " + e.cause.Error()
	}
	return e.cause.Error()
}

func (e *AwayError) Unwrap() error { return e.cause }

// ErrLate is the cause of an AwayError if the upstream did not answer in time.
var ErrLate = fmt.Errorf("the upstream did not answer within %s", Patience)

// verdict returns an error and closes the body, unless the answer serves the request.
func verdict(response *http.Response) error {
	status := response.StatusCode
	if status/100 == 2 && status != http.StatusNoContent { // including 203 from a proxy
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	if isRefusal(status) {
		return &RefusedError{Status: status, Document: document(response.Body), ContentRange: response.Header.Get("Content-Range")}
	}
	cause := fmt.Errorf("the upstream answered %d %s", status, http.StatusText(status))
	return &AwayError{RetryAfter: min(retryAfter(response.Header, time.Now()), longestRetryAfter), status: status, cause: cause}
}

func isRefusal(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// Unanswered reports whether a retry with another method cannot help: the upstream or its token
// server did not answer, or asks to wait.
func Unanswered(err error) bool {
	away, ok := errors.AsType[*AwayError](err)
	return ok && (away.status == 0 || away.noToken || away.RetryAfter > 0)
}

const (
	largestDocument = 16 << 10
	mostErrors      = 10
	longestMessage  = 512
)

// document reads an error document (distribution-spec, error codes), and returns its codes and
// messages. Details are dropped: they may repeat the request.
func document(body io.Reader) []byte {
	var found struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	content, err := io.ReadAll(io.LimitReader(body, largestDocument))
	if err != nil || json.Unmarshal(content, &found) != nil || len(found.Errors) == 0 {
		return nil
	}
	found.Errors = found.Errors[:min(len(found.Errors), mostErrors)]
	for i := range found.Errors {
		one := &found.Errors[i]
		one.Code, one.Message = printable(one.Code), printable(one.Message)
	}
	cleaned, _ := json.Marshal(found) //nolint:errchkjson // strings only
	return cleaned
}

func printable(text string) string {
	text = text[:min(len(text), longestMessage)]
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// retryAfter parses the header as seconds, as a date (RFC 9110, 10.2.3), or as a Go duration, which
// ghcr.io sends.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil || errors.Is(err, strconv.ErrRange) { // for ErrRange, Atoi returns the smallest or largest int
		return time.Duration(min(max(seconds, 0), 1<<20)) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(date.Sub(now), 0)
	}
	duration, _ := time.ParseDuration(text)
	return max(duration, 0)
}
