package accesslog

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestAskerOf(t *testing.T) {
	for userAgent, want := range map[string]Asker{
		"containerd/v2.3.4":                        AskerNode,
		"containerd/2.3.4+unknown":                 AskerNode,
		"go-containerregistry":                     AskerHarness,
		"go-containerregistry/v0.22.1":             AskerHarness,
		"crane/v0.22.1 go-containerregistry/v0.22": AskerHarness,
		"registry-cache-testbed/1":                 AskerHarness,
		"Go-http-client/1.1":                       AskerCache,
		"Go-http-client/2.0":                       AskerCache,
		"registry-cache/v0.1.0":                    AskerCache,
		"distribution/v3.1.2":                      AskerCache,
		"curl/8.5.0":                               AskerOther,
		"docker/20.10 go/go1.18":                   AskerOther,
		"":                                         AskerOther,
	} {
		t.Run(userAgent, func(t *testing.T) {
			if got := AskerOf(userAgent); got != want {
				t.Errorf("AskerOf(%q) = %s, want %s", userAgent, got, want)
			}
		})
	}
}

func TestNewRecord(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		method, target        string
		kind                  Kind
		repository, reference string
	}{
		{http.MethodGet, "/v2/", KindBase, "", ""},
		{http.MethodHead, "/v2/shop/web/manifests/v1", KindManifest, "shop/web", "v1"},
		{http.MethodGet, "/v2/shop/web/manifests/" + digest, KindManifest, "shop/web", digest},
		{http.MethodGet, "/v2/web/blobs/" + digest + "?ns=alpha.upstream.test", KindBlob, "web", digest},
		{http.MethodPost, "/v2/web/blobs/uploads/", KindOther, "web", ""},
		{http.MethodPatch, "/v2/web/blobs/uploads/c7d9e0a1-1111-2222-3333-444455556666", KindOther, "web", ""},
		{http.MethodGet, "/v2/web/tags/list", KindOther, "web", ""},
		{http.MethodGet, "/v2/_catalog", KindOther, "", ""},
		{http.MethodGet, "/v2/blobs/manifests/blobs", KindManifest, "blobs", "blobs"},
		{http.MethodGet, "/v2/web/blobs/nonsense", KindOther, "", ""},
		{http.MethodGet, "/", KindOther, "", ""},
	} {
		t.Run(tc.method+" "+tc.target, func(t *testing.T) {
			got := newRecord(httptest.NewRequest(tc.method, tc.target, nil), now)
			if got.Kind != tc.kind || got.Repository != tc.repository || got.Reference != tc.reference {
				t.Errorf("kind %q, repository %q, reference %q; want %q, %q, %q",
					got.Kind, got.Repository, got.Reference, tc.kind, tc.repository, tc.reference)
			}
			if got.Method != tc.method || !got.Time.Equal(now) || got.Scheme != "http" {
				t.Errorf("record %+v", got)
			}
		})
	}
}

func TestNewRecordScheme(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "/v2/", nil)
	request.TLS = &tls.ConnectionState{}
	if got := newRecord(request, time.Now()); got.Scheme != "https" {
		t.Errorf("scheme %q over TLS", got.Scheme)
	}
}

// TestNewRecordHasNoCredentials: a record contains no credentials in any form.
func TestNewRecordHasNoCredentials(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"basic":         func(r *http.Request) { r.SetBasicAuth("@robot", "secret") },
		"bearer":        func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") },
		"of a proxy":    func(r *http.Request) { r.Header.Set("Proxy-Authorization", "Basic secret") },
		"with no type":  func(r *http.Request) { r.Header.Set("Authorization", "secret") },
		"in the URL":    func(r *http.Request) { r.URL.User = url.UserPassword("@robot", "secret") },
		"in the cookie": func(r *http.Request) { r.Header.Set("Cookie", "secret") },
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "http://alpha.upstream.test/v2/web/manifests/v1", nil)
			change(request)
			record := newRecord(request, time.Now())
			line, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(line), "secret") || strings.Contains(string(line), "robot") {
				t.Errorf("record %s", line)
			}
			if got, want := record.Authorization, request.Header.Get("Authorization")+request.Header.Get("Proxy-Authorization") != ""; got != want {
				t.Errorf("authorization %v, want %v", got, want)
			}
			if record.Host != "alpha.upstream.test" {
				t.Errorf("host %q", record.Host)
			}
		})
	}
}

func TestNewRecordOfATunnel(t *testing.T) {
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader("CONNECT beta.upstream.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	if got := newRecord(request, time.Now()); got.Host != "beta.upstream.test:443" || got.Kind != KindOther || got.Path != "" {
		t.Errorf("record %+v", got)
	}
}
