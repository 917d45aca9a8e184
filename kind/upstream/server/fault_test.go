package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const containerd = "containerd/v2.3.4"

// broken is a real registry with one image, web:v1, and a faults file.
type broken struct {
	upstream
	faults string
	// reached receives a value whenever a request for the blob reaches the server.
	reached chan string
	// blob is the path of a layer, and content is what the layer contains.
	blob    string
	content []byte
}

func startBroken(t *testing.T) *broken {
	t.Helper()
	b := &broken{faults: filepath.Join(t.TempDir(), "faults.json"), reached: make(chan string, 100)}
	b.upstream = start(t, b.tell, Faults(b.faults, Sites{Sibling: "site.alpha.test", Foreign: "alpha.elsewhere.test"}))
	layers, err := b.push(t, "web:v1").Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	b.blob = "/v2/web/blobs/" + digest.String()
	whole := b.ask(t, http.MethodGet, b.blob, containerd)
	if whole.err != nil || whole.status != http.StatusOK || len(whole.body) < 10_000 {
		t.Fatalf("the registry fails without a fault: %+v", whole)
	}
	b.content = whole.body
	<-b.reached
	return b
}

func (b *broken) tell(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == b.blob {
			b.reached <- r.URL.Path
		}
		next.ServeHTTP(w, r)
	})
}

// awaitReached waits for the next request for the blob to reach the server.
func (b *broken) awaitReached(t *testing.T) {
	t.Helper()
	select {
	case <-b.reached:
	case <-time.After(time.Minute):
		t.Fatal("the request did not come")
	}
}

// want returns a fault of the given kind. The options are names, each followed by a value.
func want(t *testing.T, kind spec.Kind, options ...string) spec.Fault {
	t.Helper()
	given := map[string][]string{}
	for i := 0; i < len(options); i += 2 {
		given[options[i]] = append(given[options[i]], options[i+1])
	}
	f, err := spec.New("upstream/alpha", string(kind), given)
	if err != nil {
		t.Fatal(err)
	}
	return f.Begin("f1", time.Now())
}

func (b *broken) set(t *testing.T, all ...spec.Fault) {
	t.Helper()
	store(t, b.faults, all...)
}

// store writes the faults to the file.
func store(t *testing.T, path string, all ...spec.Fault) {
	t.Helper()
	content, err := spec.Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFaults(path, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// answer is the response that a client got.
type answer struct {
	status  int
	header  http.Header
	length  int64
	body    []byte
	err     error
	seconds float64
}

func (b *broken) ask(t *testing.T, method, path, userAgent string) answer {
	t.Helper()
	return b.askWith(t.Context(), method, path, userAgent)
}

func (b *broken) askWith(ctx context.Context, method, path, userAgent string) answer {
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, method, b.URL+path, nil)
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("User-Agent", userAgent)
	response, err := b.Client().Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, response.ContentLength, body, err, time.Since(began).Seconds()}
}

// hit returns the records of requests whose responses a fault changed.
func (b *broken) hit(t *testing.T) accesslog.Records {
	t.Helper()
	return b.records(t).Filter(func(r accesslog.Record) bool { return len(r.Faults) > 0 })
}

func TestStatusFault(t *testing.T) {
	b := startBroken(t)
	b.set(t, want(t, spec.Status, "status", "429", "header", "Retry-After=30", "header", "Content-Type=text/html", "body", "slow down"))
	got := b.ask(t, http.MethodGet, "/v2/web/manifests/v1", containerd)
	if got.status != http.StatusTooManyRequests || string(got.body) != "slow down" || got.header.Get("Retry-After") != "30" ||
		got.header.Get("Content-Type") != "text/html" {
		t.Errorf("answer %+v", got)
	}
	head := b.ask(t, http.MethodHead, b.blob, containerd)
	if head.status != http.StatusTooManyRequests || head.length != int64(len("slow down")) || head.err != nil {
		t.Errorf("answer to HEAD %+v", head)
	}
	if base := b.ask(t, http.MethodGet, "/v2/", "Go-http-client/1.1"); base.status != http.StatusTooManyRequests {
		t.Errorf("the cache's check was answered with %d", base.status)
	}
	hit := b.hit(t)
	if len(hit) != 3 || hit[0].Status != http.StatusTooManyRequests || hit[0].Bytes != 9 || hit[0].Faults[0] != "f1" || hit[1].Bytes != 0 {
		t.Errorf("records %+v", hit)
	}
}

func TestWhomFaultsHit(t *testing.T) {
	refuse := func(on string) []string { return []string{"status", "503", "on", on} }
	for _, tc := range []struct {
		name            string
		options         []string
		path, userAgent string
		hit             bool
	}{
		{"manifest of all", refuse("all"), "/v2/web/manifests/v1", containerd, true},
		{"manifest of manifests", refuse("manifests"), "/v2/web/manifests/v1", containerd, true},
		{"manifest of blobs", refuse("blobs"), "/v2/web/manifests/v1", containerd, false},
		{"blob of blobs", refuse("blobs"), "", "Go-http-client/2.0", true},
		{"blob of manifests", refuse("manifests"), "", "Go-http-client/2.0", false},
		{"base of all", refuse("all"), "/v2/", containerd, true},
		{"base of blobs", refuse("blobs"), "/v2/", containerd, false},
		{"health check", refuse("all"), "/v2/", "registry-cache-testbed/1", false},
		{"pull of the testbed", refuse("all"), "/v2/web/manifests/v1", "go-containerregistry/v0.22.1", false},
		{"somebody with curl", refuse("all"), "/v2/web/manifests/v1", "curl/8.5.0", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := startBroken(t)
			b.set(t, want(t, spec.Status, tc.options...))
			path := tc.path
			if path == "" {
				path = b.blob
			}
			got := b.ask(t, http.MethodGet, path, tc.userAgent)
			if hit := got.status == http.StatusServiceUnavailable; hit != tc.hit {
				t.Errorf("answered with %d, hit should be %t", got.status, tc.hit)
			}
			b.push(t, "other:v1") // faults never affect a push
		})
	}
}

func TestFaultsEnd(t *testing.T) {
	b := startBroken(t)
	over := want(t, spec.Status, "status", "500", "for", "1s")
	over.Ends = time.Now().Add(-time.Millisecond)
	for name, all := range map[string][]spec.Fault{"over": {over}, "cleared": {}} {
		b.set(t, want(t, spec.Status, "status", "500"))
		if got := b.ask(t, http.MethodGet, b.blob, containerd); got.status != http.StatusInternalServerError {
			t.Fatalf("%s: not hit before: %d", name, got.status)
		}
		b.set(t, all...)
		if got := b.ask(t, http.MethodGet, b.blob, containerd); got.status != http.StatusOK || !bytes.Equal(got.body, b.content) {
			t.Errorf("%s: answered with %d, %v", name, got.status, got.err)
		}
	}
}

func TestReplaceFaultsRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.json")
	for _, content := range []string{"", "{}", `[{"target":"upstream/a","kind":"explode"}]`} {
		if err := ReplaceFaults(path, strings.NewReader(content)); err == nil {
			t.Errorf("%q was taken", content)
		}
	}
	if all, err := readFaults(path); err != nil || len(all) != 0 {
		t.Errorf("a refused file was stored: %v, %v", all, err)
	}
}

// TestHang: readers of the log do not wait for a response that may never come.
func TestHang(t *testing.T) {
	b := startBroken(t)
	b.set(t, want(t, spec.Hang))
	settle := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := b.askWith(ctx, http.MethodGet, accesslog.SettlePath, "registry-cache-testbed/1"); got.status != http.StatusOK {
			t.Errorf("the log does not settle: %+v", got)
		}
	}
	answered := make(chan answer)
	ask := func(ctx context.Context) {
		go func() { answered <- b.askWith(ctx, http.MethodGet, b.blob, containerd) }()
		b.awaitReached(t) // on a busy machine this may take longer than the timeout of the client
	}
	impatient, cancel := context.WithCancel(t.Context())
	ask(impatient)
	time.AfterFunc(250*time.Millisecond, cancel)
	if got := <-answered; !errors.Is(got.err, context.Canceled) {
		t.Errorf("an answer came: %+v", got)
	}
	ask(t.Context())
	settle()
	select {
	case got := <-answered:
		t.Errorf("an answer came before the fault ended: %+v", got)
	case <-time.After(300 * time.Millisecond):
	}
	settle()
	b.set(t)
	if got := <-answered; got.status != http.StatusOK || !bytes.Equal(got.body, b.content) {
		t.Errorf("after the fault: %+v", got)
	}
	hit := b.hit(t)
	if len(hit) != 2 || !hit[0].Aborted || hit[0].Bytes != 0 || hit[1].Aborted || hit[1].Bytes != int64(len(b.content)) {
		t.Errorf("records %+v", hit)
	}
}

// TestFaultsInTurn checks that one request can be slowed down by a fault and then cut by another.
func TestFaultsInTurn(t *testing.T) {
	b := startBroken(t)
	slow, cut := want(t, spec.Slow, "rate", strconv.Itoa(2*len(b.content))), want(t, spec.Truncate)
	cut.ID = "f2"
	b.set(t, slow, cut)
	got := b.ask(t, http.MethodGet, b.blob, containerd)
	if len(got.body) != len(b.content)/2 || got.err == nil || got.seconds < 0.2 {
		t.Errorf("%d bytes, %v after %.3f s", len(got.body), got.err, got.seconds)
	}
	if hit := b.hit(t); len(hit) != 1 || strings.Join(slices.Sorted(slices.Values(hit[0].Faults)), ",") != "f1,f2" {
		t.Errorf("records %+v", hit)
	}
}
