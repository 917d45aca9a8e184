package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
)

// guarded asks for the credentials of the fault by HTTP basic authentication. What it lets through is not changed, so the access
// log notes the fault for refused requests only.
func (d disturbance) guarded(next http.Handler) http.Handler {
	d.Status, d.Body = http.StatusUnauthorized, http.StatusText(http.StatusUnauthorized)+"\n"
	d.Header = http.Header{"Www-Authenticate": {fmt.Sprintf("Basic realm=%q", realm)}}
	refused := d.noted(http.HandlerFunc(d.answer))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, shown := r.BasicAuth()
		if sum := sha256.Sum256([]byte(user + ":" + password)); !shown || hex.EncodeToString(sum[:]) != d.Accept {
			refused.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
