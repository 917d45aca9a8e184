package registryprofile

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// grant records when a token was issued, and for which scopes.
type grant struct {
	issued time.Time
	scopes string
}

// authorized reports whether the request may continue. If not, it has answered the request.
func (h *handler) authorized(w http.ResponseWriter, q request) bool {
	challenge := h.Challenge
	if q.hop > 0 {
		challenge = h.RedirectChallenge
	}
	authorization := q.Header.Get("Authorization")
	if challenge == "" {
		return true
	}
	if username, password, basic := q.BasicAuth(); basic && (challenge != "bearer" || h.RefusedChallenge == "basic") {
		if q.hop > 0 || h.Username == "" || username == h.Username && password == h.Password {
			return true
		}
		h.challenge(w, q, challenge, "")
		return false
	}
	token, bearer := strings.CutPrefix(authorization, "Bearer ")
	switch {
	case !bearer:
		h.challenge(w, q, challenge, "")
	case h.valid(token, q.name):
		return true
	case h.Refused != 0 && h.Refused != http.StatusUnauthorized || h.RefusedChallenge == "none":
		document(w, cmp.Or(h.Refused, http.StatusUnauthorized), "DENIED")
	case h.RefusedChallenge == "basic":
		h.challenge(w, q, "basic", "")
	default:
		h.challenge(w, q, challenge, `,error="invalid_token"`)
	}
	return false
}

// valid reports whether the token is known, has not expired, and allows the repository, if any.
func (h *handler) valid(token, repository string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, known := h.tokens[token]
	if !known || h.TokenLife > 0 && time.Since(g.issued) >= time.Duration(h.TokenLife)*time.Second {
		return false
	}
	if h.Scope != "" && h.Scope != "-" && slices.Contains(strings.Fields(g.scopes), h.Scope) {
		return true
	}
	return repository == "" || strings.Contains(g.scopes, "repository:"+repository+":")
}

// challenge answers 401 with the challenges of the given kind.
func (h *handler) challenge(w http.ResponseWriter, q request, kind, detail string) {
	if kind == "basic" || kind == "both" {
		w.Header().Add("WWW-Authenticate", `Basic realm="registry"`)
	}
	realms := h.Realms
	if len(realms) == 0 || q.hop > 0 {
		realms = []string{Same}
	}
	scope := h.Scope
	switch {
	case scope == "" && q.name != "":
		scope = "repository:" + q.name + ":pull"
	case scope == "":
		scope = h.RootScope
	}
	if scope != "" && scope != "-" {
		detail = `,scope="` + scope + `"` + detail
	}
	if kind != "basic" {
		service := "registry"
		path := TokenPath
		if q.hop > 0 {
			path, service = "/hop"+strconv.Itoa(q.hop)+TokenPath, "target"
		}
		for _, realm := range realms {
			w.Header().Add("WWW-Authenticate",
				fmt.Sprintf(`Bearer realm="%s",service=%q%s`, h.site(realm, q.Request)+path, service, detail))
		}
	}
	document(w, http.StatusUnauthorized, "UNAUTHORIZED")
}

// token answers as the token server.
func (h *handler) token(w http.ResponseWriter, q request) {
	_ = q.ParseForm() // a broken form contains no values
	if q.hop == 0 && h.tokenFails(w, q) {
		return
	}
	username, password, basic := q.BasicAuth()
	if q.Method == http.MethodPost {
		username, password, basic = q.PostForm.Get("username"), q.PostForm.Get("password"), true
	}
	admitted := q.hop > 0 || h.Username == "" || username == h.Username && password == h.Password ||
		!basic && h.Anonymous || h.RefreshToken != "" && q.PostForm.Get("refresh_token") == h.RefreshToken
	if !admitted {
		document(w, http.StatusUnauthorized, "UNAUTHORIZED")
		return
	}
	h.mu.Lock()
	token := "t" + rand.Text() // random, because no other profile may accept it
	h.tokens[token] = grant{time.Now(), strings.Join(q.Form["scope"], " ")}
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch h.TokenField {
	case "html", "empty":
		document(w, http.StatusOK, h.TokenField)
	default:
		body, err := json.Marshal(h.tokenBody(token))
		if err != nil {
			document(w, http.StatusInternalServerError, "UNKNOWN")
			return
		}
		_, _ = w.Write(body) // an error means that the client has left
	}
}

// tokenFails answers with a failure, if the profile demands one, and reports whether it has.
func (h *handler) tokenFails(w http.ResponseWriter, q request) bool {
	status := h.TokenGet
	if q.Method == http.MethodPost {
		status = h.TokenPost
	}
	switch {
	case h.TokenHangs:
		<-q.Context().Done()
	case h.TokenStatus != 0 && h.due("token", h.TokenTimes):
		if h.TokenRetryAfter != "" {
			w.Header().Set("Retry-After", h.TokenRetryAfter)
		}
		document(w, h.TokenStatus, "TOOMANYREQUESTS")
	case status != 0 && (h.RefreshToken == "" || q.PostForm.Get("refresh_token") != h.RefreshToken):
		document(w, status, "UNSUPPORTED")
	default:
		return false
	}
	return true
}

func (h *handler) tokenBody(token string) map[string]any {
	body := map[string]any{}
	for _, field := range []string{"token", "access_token"} {
		if h.TokenField == "" || h.TokenField == field {
			body[field] = token
		}
	}
	if h.RefreshToken != "" {
		body["refresh_token"] = h.RefreshToken
	} else if h.TokenField == "refresh_token" {
		body["refresh_token"] = "refresh-" + token
	}
	if h.TokenExpiresIn != 0 {
		body["expires_in"] = h.TokenExpiresIn
	}
	if h.TokenIssuedAt {
		body["issued_at"] = time.Now().Add(-time.Duration(h.TokenIssuedAgo) * time.Second).UTC().Format(time.RFC3339)
	}
	return body
}
