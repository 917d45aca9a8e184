package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// watched is the second oracle: it sees every request of the cache.
func (w *diffWorld) watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.leak(r, body)
		w.hammer(r)
		token := strings.HasSuffix(r.URL.Path, registryprofile.TokenPath)
		repository := "token"
		if name, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/"); found {
			repository = name
		} else if name, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/blobs/"); found {
			repository = name
		}
		if i := strings.Index(repository, "/v2/"); i >= 0 { // the target of a redirect
			repository = repository[i+len("/v2/"):]
		}
		seen := &diffSeen{ResponseWriter: rw}
		done := false
		defer func() {
			if !done || seen.status >= 500 || seen.status == http.StatusTooManyRequests || seen.status == http.StatusRequestTimeout {
				w.mu.Lock()
				w.trouble[repository] = time.Now()
				w.mu.Unlock()
			}
		}()
		next.ServeHTTP(seen, r)
		done = true
		if token {
			w.answered(r, seen)
		}
	})
}

// letDown reports whether the cache may consider the repository away.
func (w *diffWorld) letDown(repository string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	recent := func(what string) bool { at, is := w.trouble[what]; return is && time.Since(at) < 2*time.Minute }
	return recent(repository) || recent("token")
}

type diffSeen struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// Unwrap supports http.ResponseController.
func (s *diffSeen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (s *diffSeen) WriteHeader(status int) { s.status = status; s.ResponseWriter.WriteHeader(status) }

// Write implements http.ResponseWriter.
func (s *diffSeen) Write(p []byte) (int, error) {
	if s.body.Len() < 1000 {
		s.body.Write(p)
	}
	return s.ResponseWriter.Write(p)
}

// answered records a token server's answer to the cache.
func (w *diffWorld) answered(r *http.Request, seen *diffSeen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pause, err := time.ParseDuration(seen.Header().Get("Retry-After") + "s"); err == nil && seen.status == http.StatusTooManyRequests {
		w.wait = time.Now().Add(pause)
	}
	var answer struct {
		Token       string
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(seen.body.Bytes(), &answer) == nil && r.Header.Get("Authorization") == "" && r.Method == http.MethodGet {
		w.tokens[cmp.Or(answer.Token, answer.AccessToken)] = r.Host
	}
}

// leak reports credentials that are sent to another domain.
func (w *diffWorld) leak(r *http.Request, body []byte) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	own := host == w.host || diffDomain(host) == diffDomain(w.host)
	if own {
		return
	}
	if kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); kind != "" {
		w.mu.Lock()
		anonymous := kind == "Bearer" && w.tokens[token] == r.Host
		w.mu.Unlock()
		if !anonymous {
			w.fault("leak: Authorization %s to %s", kind, r.Host)
		}
	}
	if text := r.URL.String() + string(body); strings.Contains(text, diffPassword) || strings.Contains(text, url.QueryEscape(diffUser)) {
		w.fault("leak: credentials in a request to %s", r.Host)
	}
}

// diffDomain returns the registrable domain, or the host itself.
func diffDomain(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// hammer reports requests that are repeated too often.
func (w *diffWorld) hammer(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, key := time.Now(), r.Method+" "+r.Host+r.URL.Path
	token := strings.HasSuffix(r.URL.Path, registryprofile.TokenPath) // each of many repositories may need a token
	w.asked[key] = append(w.asked[key], now)
	const within = 5 * time.Second
	most := 60 + 2*w.served[strings.TrimPrefix(r.URL.Path, "/hop1")] // requests of clients may cause them
	if times := w.asked[key]; !token && len(times) >= most && now.Sub(times[0]) < within {
		w.faults = append(w.faults, fmt.Sprintf("hammer: %s %d times in %s", key, len(times), now.Sub(times[0]).Round(time.Millisecond)))
	}
	for len(w.asked[key]) > 0 && now.Sub(w.asked[key][0]) > within {
		w.asked[key] = w.asked[key][1:]
	}
	if token && now.Before(w.wait) {
		if w.early++; w.early == 8 {
			w.faults = append(w.faults, "early: the token server is asked again and again before Retry-After")
		}
	}
}
