package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sirupsen/logrus"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// awkward are credentials that break careless code, for example code that quotes or prints them.
var awkward = []Credentials{
	{[]byte("@robot"), []byte(`'$#&:"` + "\xff\xfe\x80 \\%")},
	{[]byte("user"), []byte("line\nbreak\x00nul")},
	{[]byte("# \xc3\x28"), []byte(" leading and trailing ")},
	{[]byte("empty password"), nil},
	{[]byte("long"), []byte(strings.Repeat("p", 100) + "1")},
}

// protectedRegistry starts a registry that requires the credentials in a file.
func protectedRegistry(t *testing.T, credentials Credentials) (u upstream, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "credentials.json")
	replace(t, path, credentials)
	log := &logBuffer{}
	handler, err := NewHandler(t.Context(), t.TempDir(), path, log)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return upstream{server, log}, path
}

func replace(t *testing.T, path string, accepted ...Credentials) {
	t.Helper()
	content, err := EncodeCredentials(accepted...)
	if err != nil {
		t.Fatal(err)
	}
	if err := ReplaceCredentials(path, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// base requests the API version check and returns the status and header of the response.
func (u upstream) base(t *testing.T, credentials *Credentials) (int, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.URL+"/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if credentials != nil {
		request.SetBasicAuth(string(credentials.Username), string(credentials.Password))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode, response.Header
}

func (u upstream) status(t *testing.T, credentials *Credentials) int {
	t.Helper()
	status, _ := u.base(t, credentials)
	return status
}

func TestProtectedRegistry(t *testing.T) {
	for _, credentials := range awkward {
		t.Run(fmt.Sprintf("%q", credentials.Username), func(t *testing.T) {
			u, _ := protectedRegistry(t, credentials)
			wrongName, wrongPassword := credentials, credentials
			wrongName.Username = append([]byte("x"), credentials.Username...)
			wrongPassword.Password = append([]byte("x"), credentials.Password...)
			if n := len(credentials.Password); n > 0 {
				wrongPassword.Password = credentials.Password[:n-1]
			}
			for name, tc := range map[string]struct {
				shown *Credentials
				want  int
			}{
				"right":          {&credentials, http.StatusOK},
				"none":           {nil, http.StatusUnauthorized},
				"wrong name":     {&wrongName, http.StatusUnauthorized},
				"wrong password": {&wrongPassword, http.StatusUnauthorized},
			} {
				status, header := u.base(t, tc.shown)
				if status != tc.want {
					t.Errorf("%s: status %d, want %d", name, status, tc.want)
				}
				asked := strings.HasPrefix(header.Get("WWW-Authenticate"), "Basic realm=")
				if asked != (tc.want == http.StatusUnauthorized) {
					t.Errorf("%s: WWW-Authenticate %q", name, header.Get("WWW-Authenticate"))
				}
			}
		})
	}
}

func TestCredentialsAreReplaced(t *testing.T) {
	before, after := awkward[0], awkward[1]
	u, path := protectedRegistry(t, before)
	replace(t, path, before, after)
	if old, current := u.status(t, &before), u.status(t, &after); old != http.StatusOK || current != http.StatusOK {
		t.Errorf("while both are accepted: old credentials %d, new ones %d", old, current)
	}
	replace(t, path, after)
	if old, current := u.status(t, &before), u.status(t, &after); old != http.StatusUnauthorized || current != http.StatusOK {
		t.Errorf("old credentials %d, new ones %d", old, current)
	}
	for name, content := range map[string]string{"garbage": "secret", "colon": `[{"Username":"OjphOg=="}]`, "no name": `[{"Password":"c2VjcmV0"}]`} {
		if err := ReplaceCredentials(path, strings.NewReader(content)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want one that does not quote the file", name, err)
		}
	}
	if u.status(t, &after) != http.StatusOK {
		t.Error("a refused file replaced the good one")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if code := u.status(t, &after); code != http.StatusUnauthorized {
		t.Errorf("without a file the registry answered %d", code)
	}
}

// TestProtectedRegistryKeepsSecrets pushes and pulls with right and wrong credentials, directly and
// through distribution's pull-through cache, and then searches all output for the credentials.
func TestProtectedRegistryKeepsSecrets(t *testing.T) {
	printed := &logBuffer{}
	logrus.SetOutput(printed)
	logrus.SetLevel(logrus.DebugLevel)
	defer func() { logrus.SetOutput(io.Discard); logrus.SetLevel(logrus.InfoLevel) }()
	credentials := awkward[0]
	u, _ := protectedRegistry(t, credentials)
	img, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	known := remote.WithAuth(&authn.Basic{Username: string(credentials.Username), Password: string(credentials.Password)})
	if err := remote.Write(u.tag(t, "web:v1"), img, known); err != nil {
		t.Fatal(err)
	}
	if err := u.pull(t, "web:v1", "containerd/v2.3.4"); err == nil {
		t.Error("pulled without credentials")
	}
	if err := throughCache(t, u, credentials).pull(t, "web:v1", "containerd/v2.3.4"); err != nil {
		t.Error(err)
	}
	text := u.log.String() + printed.String()
	for _, secret := range []string{string(credentials.Password), string(credentials.Username), "robot", "QHJvYm90"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q was printed: %s", secret, text)
		}
	}
	fetched := u.records(t).Repository("web").By(accesslog.AskerCache).Blobs().Gets()
	admitted := fetched.Filter(func(r accesslog.Record) bool { return r.Authorization && r.Status == http.StatusOK })
	if len(admitted) != 2 {
		t.Errorf("%d blobs fetched with credentials, want config and layer: %+v", len(admitted), fetched)
	}
}

// throughCache starts distribution's pull-through cache of a registry.
func throughCache(t *testing.T, of upstream, credentials Credentials) upstream {
	t.Helper()
	settings := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %q}}\nproxy: {remoteurl: %q}\n", t.TempDir(), of.URL)
	config, err := configuration.Parse(strings.NewReader(settings))
	if err != nil {
		t.Fatal(err)
	}
	config.Proxy.Username, config.Proxy.Password = string(credentials.Username), string(credentials.Password)
	cache := httptest.NewServer(handlers.NewApp(t.Context(), config))
	t.Cleanup(cache.Close)
	return upstream{Server: cache}
}

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
