package registryprofile

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TokenPath is the path of the token server.
const TokenPath = "/token"

// handler is a registry with a profile. Its maps contain what it has issued.
type handler struct {
	Profile
	next  http.Handler
	sites map[string]string
	paths []*regexp.Regexp

	mu     sync.Mutex
	serial int
	tokens map[string]grant
	signed map[string]time.Time // the time of each signature
	times  map[string]int       // how often each event has occurred
}

// Handler returns a handler that makes the registry next behave as the profile describes. It serves
// all sites. sites contains their base URLs, such as https://cdn.example.com. Any other site is the
// host of the request. Handler panics if the Path of an Answer is not a valid regular expression.
func (p Profile) Handler(next http.Handler, sites map[string]string) http.Handler {
	h := &handler{
		Profile: p, next: next, sites: sites,
		tokens: map[string]grant{}, signed: map[string]time.Time{}, times: map[string]int{},
	}
	for _, a := range p.Answers {
		h.paths = append(h.paths, regexp.MustCompile(a.Path))
	}
	return h
}

// request is a request and its parsed path.
type request struct {
	*http.Request
	hop    int    // the number of the redirect whose target was asked, 0 for the registry
	path   string // without the hop
	name   string // of the repository
	object string // Manifests, Blobs or empty
}

var (
	hopPath    = regexp.MustCompile(`^/hop(\d+)(/.*)$`)
	objectPath = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs)/[^/]+$`)
)

func parse(r *http.Request) request {
	q := request{Request: r, path: r.URL.Path}
	if m := hopPath.FindStringSubmatch(r.URL.Path); m != nil {
		q.hop, _ = strconv.Atoi(m[1])
		q.path = m[2]
	}
	if m := objectPath.FindStringSubmatch(q.path); m != nil {
		q.name, q.object = m[1], m[2]
	}
	return q
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := parse(r)
	if q.path == TokenPath {
		h.token(w, q)
		return
	}
	for key, value := range h.Headers {
		w.Header().Set(key, value)
	}
	switch {
	case h.answered(w, q, true), !h.authorized(w, q), h.answered(w, q, false), h.redirected(w, q):
	default:
		h.serve(w, q) //nolint:contextcheck // it is in q
	}
}

// answered answers with the first of Answers that matches, and reports whether there is one.
func (h *handler) answered(w http.ResponseWriter, q request, early bool) bool {
	for i, a := range h.Answers {
		if a.Early != early || a.Method != "" && a.Method != q.Method || !h.paths[i].MatchString(q.URL.Path) {
			continue
		}
		if !h.due("answer "+strconv.Itoa(i)+q.URL.Path, a.Times) {
			continue
		}
		if a.RetryAfter != "" {
			w.Header().Set("Retry-After", a.RetryAfter)
		}
		document(w, cmp.Or(a.Status, http.StatusOK), a.Document)
		return true
	}
	return false
}

// due counts an event, and reports whether it has occurred at most bound times, or bound is 0.
func (h *handler) due(what string, bound int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[what]++
	return bound == 0 || h.times[what] <= bound
}

// document sends an error document. kind is empty, html, or the code in a JSON document.
func document(w http.ResponseWriter, status int, kind string) {
	body := ""
	switch kind {
	case "", "empty":
	case "html":
		w.Header().Set("Content-Type", "text/html")
		body = "<html><body><h1>" + http.StatusText(status) + "</h1></body></html>"
	default:
		w.Header().Set("Content-Type", "application/json")
		body = fmt.Sprintf(`{"errors":[{"code":%q,"message":"the registry says so"}]}`, kind)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // an error means that the client has left
}

// site returns the base URL of a site, as the client of the request reaches it.
func (h *handler) site(name string, r *http.Request) string {
	if base := h.sites[name]; base != "" && name != Same {
		return base
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// redirected redirects or refuses a request, and reports whether it has answered.
func (h *handler) redirected(w http.ResponseWriter, q request) bool {
	if q.hop > 0 && h.RedirectSigned {
		if reason := h.refusedSignature(q); reason != "" {
			document(w, http.StatusForbidden, reason)
			return true
		}
		if q.Header.Get("Authorization") != "" {
			document(w, http.StatusBadRequest, "InvalidArgument")
			return true
		}
	}
	if q.object == "" || h.RedirectOf != "" && h.RedirectOf != q.object || q.hop >= len(h.RedirectTo) {
		return false
	}
	to := h.RedirectTo[q.hop]
	location := "/hop" + strconv.Itoa(q.hop+1) + q.path
	if !h.RedirectRelative || to != Same {
		location = h.site(to, q.Request) + location
	}
	if h.RedirectSigned {
		location += "?X-Signature=" + h.sign()
	}
	w.Header().Set("Location", location)
	document(w, cmp.Or(h.Redirect, http.StatusFound), "html")
	return true
}

func (h *handler) sign() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serial++
	signature := "s" + strconv.Itoa(h.serial)
	h.signed[signature] = time.Now()
	return signature
}

// refusedSignature uses up the signature, and returns why it is refused, or "".
func (h *handler) refusedSignature(q request) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	signature := q.URL.Query().Get("X-Signature")
	made, known := h.signed[signature]
	delete(h.signed, signature)
	switch {
	case !known:
		return "SignatureDoesNotMatch"
	case h.RedirectLife > 0 && time.Since(made) > time.Duration(h.RedirectLife)*time.Second:
		return "ExpiredToken"
	}
	return ""
}

// serve lets the registry answer.
func (h *handler) serve(w http.ResponseWriter, q request) {
	r := q.Clone(q.Context())
	r.URL.Path, r.URL.RawPath, r.RequestURI = q.path, "", (&url.URL{Path: q.path}).RequestURI()
	if q.object == "" || q.Method != http.MethodGet && q.Method != http.MethodHead {
		h.next.ServeHTTP(w, r)
		return
	}
	a := &answer{ResponseWriter: w, h: h, q: q, asked: r.Header.Get("Range")}
	a.faulty = h.BodyOf == "" || h.BodyOf == q.object
	if q.Method == http.MethodGet && a.faulty {
		a.faulty = h.due(q.path, h.BodyTimes)
	}
	if a.faulty && q.Method == http.MethodGet {
		if !pause(r, time.Duration(h.Silence)*time.Millisecond) {
			return
		}
		if a.asked != "" && h.Ranges == "416" {
			document(w, http.StatusRequestedRangeNotSatisfiable, "")
			return
		}
		if h.Gzip || h.ZeroLength || h.Ranges == "ignored" {
			r.Header.Del("Range")
		} else if a.asked != "" && (h.Ranges == "other" || h.Ranges == "lies") {
			r.Header.Set("Range", "bytes=0-0")
			if !strings.HasPrefix(a.asked, "bytes=0-") {
				r.Header.Set("Range", "bytes=0-")
			}
		}
	}
	h.next.ServeHTTP(a, r)
	a.end()
}

// pause waits, and returns false if the client leaves first.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
