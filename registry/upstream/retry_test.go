package upstream

import (
	"math"
	"net/http"
	"testing"
	"time"
)

// TestRetryAfter checks the forms of the header. An invalid header is ignored.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]struct{ least, most time.Duration }{
		"":                              {0, 0},
		"0":                             {0, 0},
		"5":                             {5 * time.Second, 5 * time.Second},
		"-5":                            {0, 0},
		"99999999999":                   {time.Hour, math.MaxInt64},
		"99999999999999999999":          {time.Hour, math.MaxInt64},
		"-99999999999999999999":         {0, 0},
		"Wed, 01 Jul 2026 12:00:30 GMT": {30 * time.Second, 30 * time.Second},
		"Wed, 01 Jul 2026 11:59:00 GMT": {0, 0},
		"Thu, 01 Jul 2926 12:00:00 GMT": {time.Hour, math.MaxInt64},
		"1.5s":                          {1500 * time.Millisecond, 1500 * time.Millisecond},
		"2m3s":                          {123 * time.Second, 123 * time.Second},
		"-2s":                           {0, 0},
		"soon":                          {0, 0},
		"5 ":                            {0, 0},
	} {
		t.Run(text, func(t *testing.T) {
			if got := retryAfter(http.Header{"Retry-After": {text}}, now); got < want.least || got > want.most {
				t.Errorf("got %s, want %s to %s", got, want.least, want.most)
			}
		})
	}
}
