package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// StatusError is an answer that is not what was asked for.
type StatusError struct {
	Status int
	// RetryAfter is how long the upstream asks clients to wait, at most a minute, or 0.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the upstream answered %d %s", e.Status, http.StatusText(e.Status))
}

// Away reports whether the upstream is away: 408, 429 or 5xx. Others refuse the request.
func (e *StatusError) Away() bool {
	return e.Status >= 500 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests
}

// asksToWait returns how long the upstream asks to wait, or 0.
func asksToWait(err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok && status.Away() {
		return status.RetryAfter
	}
	return 0
}

// failure returns the error of a request. It closes the body of an answer that becomes one.
func failure(response *http.Response, err error) error {
	if err != nil {
		return err
	}
	status := &StatusError{response.StatusCode, min(retryAfter(response.Header, time.Now()), longestRetryAfter)}
	if !status.Away() {
		return nil
	}
	return errors.Join(status, response.Body.Close())
}

// retryAfter reads the header in seconds or as a date (RFC 9110, 10.2.3).
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}
