package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// closed is a body that records Close.
type closed struct {
	io.Reader
	is bool
}

// Close implements io.Closer.
func (c *closed) Close() error { c.is = true; return nil }

// TestVerdict checks the verdicts about answers, and that only the bodies of served answers stay
// open.
func TestVerdict(t *testing.T) {
	const served, refused, away = "served", "refused", "away"
	for status, want := range map[int]string{
		200: served, 201: served, 203: served, 206: served, 204: away, 304: away, 307: away, 400: refused, 401: refused, 403: refused, 404: refused,
		408: away, 410: refused, 416: refused, 429: away, 451: refused, 500: away, 503: away, 599: away,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			body := &closed{Reader: strings.NewReader("{}")}
			header := http.Header{"Retry-After": {"5"}, "Content-Range": {"bytes */7"}}
			err := verdict(&http.Response{StatusCode: status, Header: header, Body: body})
			got := served
			if no, ok := errors.AsType[*RefusedError](err); ok {
				got = refused
				if no.Status != status || no.ContentRange != "bytes */7" || no.Document != nil {
					t.Errorf("the refusal is %+v", no)
				}
			} else if silent, ok := errors.AsType[*AwayError](err); ok {
				got = away
				if silent.RetryAfter.Seconds() != 5 || silent.Remembered || !strings.Contains(err.Error(), fmt.Sprint(status)) {
					t.Errorf("the outage is %+v", silent)
				}
			}
			if got != want || body.is != (want != served) {
				t.Errorf("%s, body closed: %t", got, body.is)
			}
		})
	}
}

// TestDocument checks the parts of an error document that clients get: printable codes and messages
// of a bounded size, but no details, which may repeat the request.
func TestDocument(t *testing.T) {
	errorsOf := func(n int) string {
		return `{"errors":[` + strings.TrimSuffix(strings.Repeat(`{"code":"DENIED"},`, n), ",") + `]}`
	}
	message := func(text string) string {
		quoted, _ := json.Marshal(text)
		return `{"errors":[{"code":"DENIED","message":` + string(quoted) + `}]}`
	}
	cleaned := func(text string) string { return `{"errors":[{"code":"DENIED","message":"` + text + `"}]}` }
	for name, test := range map[string]struct{ body, want string }{
		"codes and messages": {
			`{"errors":[{"code":"A","message":"a"},{"code":"B","message":"b"}]}`,
			`{"errors":[{"code":"A","message":"a"},{"code":"B","message":"b"}]}`,
		},
		"detail":         {`{"errors":[{"code":"DENIED","message":"no","detail":{"Authorization":"secret"}}],"token":"secret"}`, cleaned("no")},
		"HTML":           {"<html><body>404</body></html>", ""},
		"empty":          {"", ""},
		"no errors":      {`{"errors":[]}`, ""},
		"null":           {"null", ""},
		"other JSON":     {`{"message":"not found"}`, ""},
		"wrong code":     {`{"errors":[{"code":1,"message":"a"}]}`, ""},
		"wrong type":     {`{"errors":"no"}`, ""},
		"control":        {message("a\x1b[31mb\r\nc\u202ed\x00"), cleaned("a [31mb  c d ")},
		"not ASCII":      {message("kein Zugriff für Müller"), cleaned("kein Zugriff für Müller")},
		"long message":   {message(strings.Repeat("x", 600)), cleaned(strings.Repeat("x", 512))},
		"11 errors":      {errorsOf(11), strings.ReplaceAll(errorsOf(10), `"DENIED"`, `"DENIED","message":""`)},
		"16 KiB":         {message("no") + strings.Repeat(" ", 16<<10-len(message("no"))), cleaned("no")},
		"more than that": {strings.Repeat(" ", 16<<10) + message("no"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := document(strings.NewReader(test.body)); string(got) != test.want || test.want == "" && got != nil {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := document(io.MultiReader(strings.NewReader(message("no")), brokenReader{})); got != nil {
		t.Errorf("of a body that breaks: %q", got)
	}
	endless := &counted{}
	if document(endless); endless.n > 16<<10 {
		t.Errorf("%d bytes were read", endless.n)
	}
}

type brokenReader struct{}

// Read implements io.Reader.
func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// counted is an endless body.
type counted struct{ n int }

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	c.n += copy(p, bytes.Repeat([]byte(" "), len(p)))
	return len(p), nil
}
