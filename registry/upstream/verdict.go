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

// RefusedError is an answer of the classes 4xx except 408 and 429: the upstream says no. It is not
// an outage.
type RefusedError struct {
	Status int
	// Document is the upstream's error document, reduced to codes and messages, or nil. It has
	// nothing of a token server.
	Document []byte
	// ContentRange is that of a 416.
	ContentRange string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the upstream answered %d %s", e.Status, http.StatusText(e.Status))
}

// AwayError says that the upstream, or its token server, does not serve an object now: it is
// silent, or answered 408, 429, 5xx, or what no registry answers.
type AwayError struct {
	// RetryAfter is how long the upstream asks to wait, at most a minute, or 0.
	RetryAfter time.Duration
	// Remembered says that the upstream was not asked this time.
	Remembered bool

	answered bool // with a status, so another method may help
	noToken  bool // the token server is away
	cause    error
}

// Error implements error.
func (e *AwayError) Error() string {
	if e.Remembered {
		return "the upstream is away: " + e.cause.Error()
	}
	return e.cause.Error()
}

func (e *AwayError) Unwrap() error { return e.cause }

// ErrLate says that the upstream did not answer in time.
var ErrLate = fmt.Errorf("the upstream did not answer within %s", Patience)

// verdict returns nil for an answer that serves what was asked for. Otherwise it closes the answer.
func verdict(response *http.Response) error {
	status := response.StatusCode
	if status == http.StatusOK || status == http.StatusPartialContent {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	if isRefusal(status) {
		return &RefusedError{Status: status, Document: document(response.Body), ContentRange: response.Header.Get("Content-Range")}
	}
	cause := fmt.Errorf("the upstream answered %d %s", status, http.StatusText(status))
	return &AwayError{RetryAfter: min(retryAfter(response.Header, time.Now()), longestRetryAfter), answered: true, cause: cause}
}

func isRefusal(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// Unanswered reports whether an error says that another method cannot help: the upstream was not
// reached, or asks to wait.
func Unanswered(err error) bool {
	away, ok := errors.AsType[*AwayError](err)
	return ok && (!away.answered || away.noToken || away.RetryAfter > 0)
}

const (
	largestDocument = 16 << 10
	mostErrors      = 10
	longestMessage  = 512
)

// document reads an error document (distribution-spec, error codes), and returns its codes and
// messages. A detail may repeat what was sent, so it stays here.
func document(body io.Reader) []byte {
	type one struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	var found struct {
		Errors []one `json:"errors"`
	}
	content, err := io.ReadAll(io.LimitReader(body, largestDocument))
	if err != nil || json.Unmarshal(content, &found) != nil || len(found.Errors) == 0 {
		return nil
	}
	found.Errors = found.Errors[:min(len(found.Errors), mostErrors)]
	for i, e := range found.Errors {
		found.Errors[i] = one{printable(e.Code), printable(e.Message)}
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

// retryAfter reads the header in seconds, as a date (RFC 9110, 10.2.3), or as a duration of Go,
// which ghcr.io sends.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil || errors.Is(err, strconv.ErrRange) { // then the nearest int
		return time.Duration(min(max(seconds, 0), 1<<20)) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(date.Sub(now), 0)
	}
	if duration, err := time.ParseDuration(text); err == nil {
		return max(duration, 0)
	}
	return 0
}
