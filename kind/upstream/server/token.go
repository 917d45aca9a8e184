package server

import (
	"fmt"
	"io"
	"net/http"
)

// tokenPath is the path of the token server, on the host of the registry.
const tokenPath = "/token"

// token is the only valid token. Every client gets it, as registries do for public images.
const token = "public"

// requireToken returns a handler that requires a bearer token
// (https://distribution.github.io/distribution/spec/auth/token/), and is also the token server. The
// access log never notes this fault.
func requireToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == tokenPath:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"token": %q}`, token) // the client may have disconnected
		case r.Header.Get("Authorization") != "Bearer "+token:
			scheme := "http"
			if r.TLS != nil {
				scheme = "https"
			}
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=%q", scheme+"://"+r.Host+tokenPath, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, http.StatusText(http.StatusUnauthorized)+"\n")
		default:
			next.ServeHTTP(w, r)
		}
	})
}
