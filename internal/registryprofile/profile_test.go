package registryprofile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const manifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`

var blob = bytes.Repeat([]byte("0123456789"), 100)

const (
	tagPath  = "/v2/team/app/manifests/v1"
	blobPath = "/v2/team/app/blobs/blob"
)

// plain is a registry with one manifest and one blob.
func plain(w http.ResponseWriter, r *http.Request) {
	object, content := "application/octet-stream", blob
	switch {
	case r.URL.Path == "/v2/":
		return
	case strings.HasPrefix(r.URL.Path, "/v2/team/app/manifests/"):
		object, content = v1.MediaTypeImageManifest, []byte(manifest)
	case !strings.HasPrefix(r.URL.Path, "/v2/team/app/blobs/"):
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", object)
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(content).String())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

const (
	self    = "registry.upstream.test"
	foreign = "cdn.elsewhere.example"
)

// start serves a registry with the profile. The returned client reaches it under every host name.
func start(t *testing.T, p Profile) *http.Client {
	t.Helper()
	server := httptest.NewServer(p.Handler(http.HandlerFunc(plain), map[string]string{
		Port: "http://" + self + ":5050", Sibling: "http://auth.upstream.test",
		Foreign: "http://" + foreign, Private: "http://10.0.0.7",
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type got struct {
	status int
	header http.Header
	body   []byte
	err    error // of the body
	length int64
}

func ask(t *testing.T, client *http.Client, method, url string, header ...string) got {
	t.Helper()
	if strings.HasPrefix(url, "/") {
		url = "http://" + self + url
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return got{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return got{response.StatusCode, response.Header, body, err, response.ContentLength}
}

func TestFields(t *testing.T) {
	has := func(header, value string) func(got) bool {
		return func(g got) bool { return g.header.Get(header) == value }
	}
	status := func(want int) func(got) bool { return func(g got) bool { return g.status == want } }
	ranged := []string{"Range", "bytes=990-"}
	for name, c := range map[string]struct {
		p      Profile
		method string
		path   string
		header []string
		want   func(got) bool
	}{
		"basic":            {Profile{Challenge: "basic"}, "GET", tagPath, nil, has("WWW-Authenticate", `Basic realm="registry"`)},
		"basic admits":     {Profile{Challenge: "basic", Username: "u", Password: "p"}, "GET", tagPath, []string{"Authorization", "Basic dTpw"}, status(200)},
		"basic refuses":    {Profile{Challenge: "basic", Username: "u", Password: "q"}, "GET", tagPath, []string{"Authorization", "Basic dTpw"}, status(401)},
		"bearer":           {Profile{Challenge: "bearer"}, "GET", tagPath, nil, has("WWW-Authenticate", `Bearer realm="http://registry.upstream.test/token",service="registry",scope="repository:team/app:pull"`)},
		"realm elsewhere":  {Profile{Challenge: "bearer", Realms: []string{Foreign}, Scope: "-"}, "GET", tagPath, nil, has("WWW-Authenticate", `Bearer realm="http://cdn.elsewhere.example/token",service="registry"`)},
		"two realms":       {Profile{Challenge: "both", Realms: []string{Port, Private}}, "GET", tagPath, nil, func(g got) bool { return len(g.header["Www-Authenticate"]) == 3 }},
		"root scope":       {Profile{Challenge: "bearer", RootScope: "repository:user/image:pull"}, "GET", "/v2/", nil, func(g got) bool { return strings.Contains(g.header.Get("WWW-Authenticate"), "user/image") }},
		"unknown token":    {Profile{Challenge: "bearer"}, "GET", tagPath, []string{"Authorization", "Bearer x"}, func(g got) bool { return strings.Contains(g.header.Get("WWW-Authenticate"), "invalid_token") }},
		"refused 400":      {Profile{Challenge: "bearer", Refused: 400}, "GET", tagPath, []string{"Authorization", "Bearer x"}, func(g got) bool { return g.status == 400 && g.header["Www-Authenticate"] == nil }},
		"refused, no more": {Profile{Challenge: "bearer", RefusedChallenge: "none"}, "GET", tagPath, []string{"Authorization", "Bearer x"}, func(g got) bool { return g.status == 401 && g.header["Www-Authenticate"] == nil }},
		"token 429":        {Profile{TokenStatus: 429, TokenRetryAfter: "30"}, "GET", "/token", nil, has("Retry-After", "30")},
		"token anonymous":  {Profile{Username: "u", Anonymous: true}, "GET", "/token", nil, status(200)},
		"token denied":     {Profile{Username: "u"}, "GET", "/token", nil, status(401)},
		"token field":      {Profile{TokenField: "access_token"}, "GET", "/token", nil, func(g got) bool { return strings.HasPrefix(string(g.body), `{"access_token":"t`) }},
		"no token": {Profile{TokenField: "refresh_token", TokenExpiresIn: 9}, "GET", "/token", nil, func(g got) bool {
			return strings.HasPrefix(string(g.body), `{"expires_in":9,"refresh_token":"refresh-t`)
		}},
		"token by POST":   {Profile{TokenGet: 405}, "GET", "/token", nil, status(405)},
		"missing":         {Profile{Missing: 403}, "GET", "/v2/no/manifests/v1", nil, func(g got) bool { return g.status == 403 && bytes.Contains(g.body, []byte("DENIED")) }},
		"answer":          {Profile{Answers: []Answer{{Method: "GET", Path: "/manifests/", Status: 412, Document: "PRECONDITION"}}}, "GET", tagPath, nil, status(412)},
		"other answer":    {Profile{Answers: []Answer{{Method: "HEAD", Path: "/manifests/", Status: 412}}}, "GET", tagPath, nil, status(200)},
		"200 with errors": {Profile{Answers: []Answer{{Path: "/manifests/", Document: "UNKNOWN"}}}, "GET", tagPath, nil, func(g got) bool { return g.status == 200 && bytes.HasPrefix(g.body, []byte(`{"errors"`)) }},
		"no HEAD digest":  {Profile{HeadWithoutDigest: true}, "HEAD", tagPath, nil, has(digestHeader, "")},
		"no HEAD length":  {Profile{HeadWithoutLength: true}, "HEAD", tagPath, nil, func(g got) bool { return g.length == -1 }},
		"HEAD length 0":   {Profile{HeadZeroLength: true}, "HEAD", tagPath, nil, func(g got) bool { return g.length == 0 }},
		"redirect":        {Profile{RedirectOf: Blobs, RedirectTo: []string{Foreign}}, "GET", blobPath, nil, has("Location", "http://"+foreign+"/hop1"+blobPath)},
		"relative":        {Profile{RedirectTo: []string{Same}, RedirectRelative: true, Redirect: 307}, "GET", blobPath, nil, has("Location", "/hop1"+blobPath)},
		"target":          {Profile{RedirectTo: []string{Foreign}, RedirectChallenge: "bearer"}, "GET", "http://" + foreign + "/hop1" + blobPath, nil, has("WWW-Authenticate", `Bearer realm="http://cdn.elsewhere.example/hop1/token",service="target",scope="repository:team/app:pull"`)},
		"cut":             {Profile{CutAfter: 100}, "GET", blobPath, nil, func(g got) bool { return len(g.body) == 100 && g.err != nil }},
		"damaged":         {Profile{Damaged: true}, "GET", blobPath, nil, func(g got) bool { return len(g.body) == len(blob) && !bytes.Equal(g.body, blob) }},
		"of others":       {Profile{Damaged: true, BodyOf: Manifests}, "GET", blobPath, nil, func(g got) bool { return bytes.Equal(g.body, blob) }},
		"chunked":         {Profile{Chunked: true}, "GET", blobPath, nil, func(g got) bool { return g.length == -1 && bytes.Equal(g.body, blob) }},
		"length 0":        {Profile{ZeroLength: true}, "GET", blobPath, nil, func(g got) bool { return g.length == 0 && g.status == 200 }},
		"no digest":       {Profile{Digest: "none"}, "GET", blobPath, nil, has(digestHeader, "")},
		"wrong digest":    {Profile{Digest: "wrong"}, "HEAD", tagPath, nil, has(digestHeader, "sha256:"+strings.Repeat("0", 64))},
		"no type":         {Profile{ContentType: "-"}, "GET", tagPath, nil, has("Content-Type", "")},
		"charset":         {Profile{ContentType: "+; charset=utf-8"}, "GET", tagPath, nil, has("Content-Type", v1.MediaTypeImageManifest+"; charset=utf-8")},
		"range":           {Profile{}, "GET", blobPath, ranged, func(g got) bool { return g.status == 206 && string(g.body) == "0123456789" }},
		"range ignored":   {Profile{Ranges: "ignored"}, "GET", blobPath, ranged, func(g got) bool { return g.status == 200 && len(g.body) == len(blob) }},
		"range 416":       {Profile{Ranges: "416"}, "GET", blobPath, ranged, status(416)},
		"other range":     {Profile{Ranges: "other"}, "GET", blobPath, ranged, has("Content-Range", "bytes 0-999/1000")},
		"lying range": {Profile{Ranges: "lies"}, "GET", blobPath, []string{"Range", "bytes=3-"}, func(g got) bool {
			return g.header.Get("Content-Range") == "bytes 3-999/1000" && len(g.body) == 997 && g.body[0] == '0' && g.err == nil
		}},
		"header": {Profile{Headers: map[string]string{"Ratelimit-Limit": "1"}}, "GET", "/v2/", nil, has("Ratelimit-Limit", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			g := ask(t, start(t, c.p), c.method, c.path, c.header...)
			if !c.want(g) {
				t.Errorf("%d %v %q %v, length %d", g.status, g.header, g.body, g.err, g.length)
			}
		})
	}
}

func TestGzip(t *testing.T) {
	g := ask(t, start(t, Profile{Gzip: true}), http.MethodGet, blobPath)
	if g.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v", g.header)
	}
	reader, err := gzip.NewReader(bytes.NewReader(g.body))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(reader); err != nil || !bytes.Equal(content, blob) {
		t.Errorf("%q, %v", content, err)
	}
}

// TestTimes checks the fields that apply only to the first requests.
func TestTimes(t *testing.T) {
	client := start(t, Profile{
		BodyTimes: 1, Damaged: true, TokenStatus: 503, TokenTimes: 2,
		Answers: []Answer{{Path: "/manifests/", Status: 429, RetryAfter: "1", Times: 1}},
	})
	for i, want := range []struct{ token, tag int }{{503, 429}, {503, 200}, {200, 200}} {
		token, tag, content := ask(t, client, "GET", "/token"), ask(t, client, "GET", tagPath), ask(t, client, "GET", blobPath)
		if token.status != want.token || tag.status != want.tag || bytes.Equal(content.body, blob) != (i > 0) {
			t.Errorf("request %d: token %d, tag %d, right bytes %v", i, token.status, tag.status, bytes.Equal(content.body, blob))
		}
	}
}

func TestSlow(t *testing.T) {
	for name, p := range map[string]Profile{"silent": {Silence: 200}, "slow": {Rate: 1000}} {
		before := time.Now()
		if g := ask(t, start(t, p), "GET", blobPath); !bytes.Equal(g.body, blob) || time.Since(before) < 150*time.Millisecond {
			t.Errorf("%s: %d bytes after %s", name, len(g.body), time.Since(before))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+self+"/token", nil)
	if response, err := start(t, Profile{TokenHangs: true}).Do(request); err == nil {
		_ = response.Body.Close()
		t.Error("a token server that hangs answered")
	}
}

func TestTokenExpires(t *testing.T) {
	client := start(t, Profile{Challenge: "bearer", TokenLife: 1})
	var body struct{ Token string }
	if err := json.Unmarshal(ask(t, client, "GET", "/token?scope=repository:team/app:pull").body, &body); err != nil {
		t.Fatal(err)
	}
	header := []string{"Authorization", "Bearer " + body.Token}
	if g := ask(t, client, "GET", tagPath, header...); g.status != 200 {
		t.Fatalf("a new token: %d", g.status)
	}
	if g := ask(t, client, "GET", "/v2/other/manifests/v1", header...); g.status != 401 {
		t.Errorf("a token for another repository: %d", g.status)
	}
	for end := time.Now().Add(5 * time.Second); ask(t, client, "GET", tagPath, header...).status != 401; {
		if time.Now().After(end) {
			t.Fatal("a token of a second is accepted for five")
		}
	}
}

func TestSignature(t *testing.T) {
	client := start(t, Profile{RedirectTo: []string{Foreign}, RedirectSigned: true})
	to := func() string { return ask(t, client, "GET", blobPath).header.Get("Location") }
	once := to()
	for i, want := range []int{200, 403} {
		if g := ask(t, client, "GET", once); g.status != want {
			t.Errorf("use %d: %d, want %d", i, g.status, want)
		}
	}
	if g := ask(t, client, "GET", to(), "Authorization", "Bearer x"); g.status != 400 {
		t.Errorf("with credentials: %d", g.status)
	}
}

// TestProfiles pulls a tag and a blob from each known registry with containerd's client.
func TestProfiles(t *testing.T) {
	for name, p := range Profiles {
		t.Run(name, func(t *testing.T) {
			if p.Description == "" || p.Source == "" {
				t.Error("no description or source")
			}
			text, err := json.Marshal(p)
			var again Profile
			if err != nil || json.Unmarshal(text, &again) != nil || !reflect.DeepEqual(p, again) {
				t.Fatalf("JSON: %s, %v", text, err)
			}
			again.Username, again.Password = "robot", "secret"
			pull(t, start(t, again))
		})
	}
}

func pull(t *testing.T, client *http.Client) {
	t.Helper()
	client.CheckRedirect = nil
	credentials := func(host string) (string, string, error) {
		if strings.HasSuffix(host, "upstream.test") {
			return "robot", "secret", nil
		}
		return "", "", nil
	}
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: docker.ConfigureDefaultRegistries(
		docker.WithClient(client), docker.WithPlainHTTP(docker.MatchAllHosts),
		docker.WithAuthorizer(docker.NewDockerAuthorizer(docker.WithAuthClient(client), docker.WithAuthCreds(credentials))),
	)})
	ref, desc, err := resolver.Resolve(t.Context(), self+"/team/app:v1")
	if err != nil || desc.Digest != digest.FromString(manifest) || desc.MediaType != v1.MediaTypeImageManifest {
		t.Fatalf("%+v, %v", desc, err)
	}
	fetcher, err := resolver.Fetcher(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	layer := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: digest.FromBytes(blob), Size: int64(len(blob))}
	for _, d := range []v1.Descriptor{desc, layer} {
		if got := fetch(t, fetcher, d); digest.FromBytes(got) != d.Digest {
			t.Errorf("%s: %q", d.MediaType, got)
		}
	}
}

func fetch(t *testing.T, fetcher remotes.Fetcher, d v1.Descriptor) []byte {
	t.Helper()
	body, err := fetcher.Fetch(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(strconv.Quote(string(content)), err)
	}
	return content
}
