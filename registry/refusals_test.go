package registry_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/registry"
)

// errorOf returns the first error of an error document, if any.
func errorOf(body []byte) (code, message string) {
	var document struct {
		Errors []struct{ Code, Message string }
	}
	if json.Unmarshal(body, &document) != nil || len(document.Errors) == 0 {
		return "", ""
	}
	return document.Errors[0].Code, document.Errors[0].Message
}

// TestRefused: a refusal of the upstream is passed on with its message. No stored tag is served
// instead, and the refusal does not count as an outage.
func TestRefused(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 405, 410, 412, 451} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				o.push("v1", 1000)
				other := o.push("other", 1000)
				p := start(t, o.URL, t.TempDir(), withPassword)
				if a := get(t, p.tag("v1")); a.status != 200 {
					t.Fatalf("before: %s", a)
				}
				unseen := o.push("v2", 1000)
				refuses := func(w http.ResponseWriter, _ *http.Request) bool {
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("X-Secret", "of the upstream")
					w.Header().Set("Set-Cookie", "secret=of-the-upstream")
					w.WriteHeader(code)
					_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"our policy says no","detail":{"x":"a detail"}}],"more":"a detail"}`)
					return true
				}
				for _, part := range []string{"/manifests/v1", "/manifests/v2", unseen.layer.String()} {
					o.when(part, refuses)
				}
				for _, url := range []string{p.tag("v2"), p.tag("v1"), p.blob(unseen.layer.String())} {
					refusedAs(t, url, code)
				}
				if a := get(t, p.tag("other")); a.status != 200 || a.stale() || a.digest() != other.manifest.String() {
					t.Errorf("another tag: %s", a)
				}
			})
		})
	}
}

// refusedAs checks that GET and HEAD are refused with the status code.
func refusedAs(t *testing.T, url string, code int) {
	t.Helper()
	var a answer
	if !within(t, clientPatience/2, func() bool { a = get(t, url); return a.status == code }) { // the last answer is reused for a second
		t.Errorf("GET %s: %s, want %d", url, a, code)
		return
	}
	if got, message := errorOf(a.body); got != "DENIED" || message != "our policy says no" || strings.Contains(string(a.body), "a detail") {
		t.Errorf("GET %s: %s", url, a)
	}
	if strings.Contains(fmt.Sprint(a.header), "of the upstream") || a.header.Get("Set-Cookie") != "" {
		t.Errorf("GET %s: header %v", url, a.header)
	}
	if a := head(t, url); a.status != code {
		t.Errorf("HEAD %s: %s, want %d", url, a, code)
	}
}

// TestRefusedDocument: the message of a refusal is bounded, and an HTML page is replaced.
func TestRefusedDocument(t *testing.T) {
	long := strings.Repeat("no", 1<<20)
	for name, test := range map[string]struct{ kind, body string }{
		"a page":         {"text/html", "<html><script>alert('no')</script></html>"},
		"a long message": {"application/json", `{"errors":[{"code":"DENIED","message":"` + long + `"}]}`},
		"many errors":    {"application/json", `{"errors":[` + strings.Repeat(`{"code":"DENIED","message":"no"},`, 50_000) + `{"code":"DENIED"}]}`},
		"nothing":        {"", ""},
		"no document":    {"application/json", `{"errors":"<html>no</html>"}`},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				o.when("/manifests/v1", func(w http.ResponseWriter, _ *http.Request) bool {
					w.Header().Set("Content-Type", test.kind)
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, test.body)
					return true
				})
				p := start(t, o.URL, t.TempDir())
				a := get(t, p.tag("v1"))
				if code, _ := errorOf(a.body); a.status != http.StatusForbidden || code == "" || len(a.body) > 8<<10 || strings.Contains(string(a.body), "<") {
					t.Errorf("%s", a)
				}
				if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
					t.Errorf("Content-Type %q", kind)
				}
			})
		})
	}
}

// TestRefusedHead: if the upstream refuses or does not support HEAD, it is asked again with GET.
func TestRefusedHead(t *testing.T) {
	for _, code := range []int{401, 403, 404, 405, 500, 501} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				o.push("v1", 1000)
				p := start(t, o.URL, t.TempDir())
				if a := get(t, p.tag("v1")); a.status != 200 {
					t.Fatalf("before: %s", a)
				}
				o.when("HEAD /v2/library", status(code))
				moved := o.push("v1", 1000)
				var a answer
				if !within(t, clientPatience/2, func() bool { a = head(t, p.tag("v1")); return a.digest() == moved.manifest.String() }) {
					t.Errorf("the tag that has moved: %s, digest %s, stale %t", a, a.digest(), a.stale())
				}
				if a := head(t, p.blob(moved.layer.String())); a.status != 200 || a.length != int64(len(moved.content)) {
					t.Errorf("HEAD of a blob: %s, length %d", a, a.length)
				}
			})
		})
	}
}

// TestUploadPaths: URLs of uploads are refused, and do not panic.
func TestUploadPaths(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		p := start(t, o.URL, t.TempDir())
		for _, path := range []string{"uploads/0123?_state=x", "uploads/0123", "uploads/"} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch} {
				if a := ask(t.Context(), method, p.blob(path)); a.status != http.StatusMethodNotAllowed {
					t.Errorf("%s %s: %s", method, path, a)
				}
			}
		}
		if n := o.requests("uploads"); n > 0 {
			t.Errorf("the upstream was asked %d times", n)
		}
	})
}
