package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// robot is the hash of the required credentials: printf %s '@robot:a b:c' | sha256sum.
const robot = "2fb62f68ce616f2c1708f5e84634a3c64084d3a2c3897ca62c6dd686bb6c0ba2"

func TestCredentialsFault(t *testing.T) {
	b := startBroken(t)
	b.set(t, want(t, spec.Credentials, "accept", robot, "on", "blobs"))
	for name, test := range map[string]struct {
		user, password string
		status         int
	}{
		"right":          {"@robot", "a b:c", http.StatusOK},
		"wrong password": {"@robot", "a b", http.StatusUnauthorized},
		"wrong name":     {"robot", "a b:c", http.StatusUnauthorized},
		"none":           {"", "", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			status, asked := b.askAs(t.Context(), t, test.user, test.password)
			if status != test.status || (asked == "Basic") != (status == http.StatusUnauthorized) {
				t.Errorf("answer %d, asks for %q", status, asked)
			}
		})
	}
	if got := b.ask(t, http.MethodGet, "/v2/web/manifests/v1", containerd); got.status != http.StatusOK {
		t.Errorf("a manifest is answered with %d (%v); the fault applies to blobs", got.status, got.err)
	}
	if hit := b.hit(t); len(hit) != 3 {
		t.Errorf("%d records name the fault, want those of the three rejected requests: %+v", len(hit), hit)
	}
}

// TestAwkwardCredentials: each of several credentials is admitted, whatever its bytes are, and
// neither the access log nor the faults file contains them.
func TestAwkwardCredentials(t *testing.T) {
	b := startBroken(t)
	all := [][2]string{
		{"@robot", `'$#&:"` + "\xff\xfe\x80 \\%"}, {"user", "line\nbreak\x00nul"}, {"# \xc3\x28", " leading and trailing "},
		{"no password", ""}, {"long", strings.Repeat("p", 100) + "1"},
	}
	var options []string
	for _, c := range all {
		sum := sha256.Sum256([]byte(c[0] + ":" + c[1]))
		options = append(options, "accept", hex.EncodeToString(sum[:]))
	}
	fault := want(t, spec.Credentials, options...)
	b.set(t, fault)
	for _, c := range all {
		if status, _ := b.askAs(t.Context(), t, c[0], c[1]); status != http.StatusOK {
			t.Errorf("%q: answer %d", c, status)
		}
		if status, _ := b.askAs(t.Context(), t, c[0], "x"+c[1]); status != http.StatusUnauthorized {
			t.Errorf("%q with another password: answer %d", c, status)
		}
	}
	written, err := spec.Encode([]spec.Fault{fault})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"@robot", "leading", "QHJvYm90"} {
		if strings.Contains(b.log.String()+string(written), secret) {
			t.Errorf("%q was written", secret)
		}
	}
}

// askAs requests the blob and returns the status and the scheme of the challenge.
func (b *broken) askAs(ctx context.Context, t *testing.T, user, password string) (status int, asked string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+b.blob, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", containerd)
	if user != "" {
		request.SetBasicAuth(user, password)
	}
	response, err := b.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	asked, _, _ = strings.Cut(response.Header.Get("WWW-Authenticate"), " ")
	return response.StatusCode, asked
}
