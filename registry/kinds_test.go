package registry_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gardener-extensions/registry-cache/registry"
)

// emptyConfig describes a config without content.
const emptyConfig = `{"mediaType":"application/vnd.oci.empty.v1+json","size":2,` +
	`"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}`

const dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"

// TestTwoKinds: a manifest is never served as a blob, and a blob is never served as a manifest.
// containerd would store it with a wrong media type.
func TestTwoKinds(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o, volume := newOrigin(t), t.TempDir()
		i := o.push("v1", 1000)
		other := o.push("v2", 1000)
		p := start(t, o.URL, volume)
		check := func(state string) {
			t.Helper()
			for what, url := range map[string]string{
				"a manifest as a blob":            p.blob(i.manifest.String()),
				"a layer as a manifest":           p.tag(i.layer.String()),
				"a config as a manifest":          p.tag(i.config.String()),
				"a manifest as a blob, elsewhere": p.url + "/v2/library/other/blobs/" + i.manifest.String(),
			} {
				for _, method := range []string{http.MethodHead, http.MethodGet} {
					if a := ask(t.Context(), method, url); a.status != http.StatusNotFound {
						t.Errorf("%s, %s: %s %s", state, what, method, a)
					}
				}
			}
		}
		check("cold")
		for _, url := range []string{p.tag("v1"), p.tag(i.manifest.String()), p.blob(i.layer.String()), p.blob(i.config.String())} {
			if a := get(t, url); a.status != 200 {
				t.Fatalf("%s: %s", url, a)
			}
		}
		await(t, "all is stored", func() bool { return p.has(i.manifest) && p.has(i.layer) && p.has(i.config) })
		check("stored")
		p.stop()
		p = start(t, o.URL, volume)
		check("after a restart")
		for _, url := range []string{p.tag("v1"), p.tag(i.manifest.String()), p.blob(i.layer.String()), p.blob(other.layer.String())} {
			if a := get(t, url); a.status != 200 {
				t.Errorf("%s: %s", url, a)
			}
		}
	})
}

// TestNoManifest: an answer that is not a manifest changes nothing, whatever its status.
func TestNoManifest(t *testing.T) {
	for name, test := range map[string]struct{ kind, content string }{
		"an error document":        {"application/json", `{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`},
		"an error document, typed": {v1.MediaTypeImageManifest, `{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`},
		"any document":             {"application/json", `{"inside":"cluster secret"}`},
		"a list":                   {v1.MediaTypeImageManifest, `[]`},
		"null":                     {v1.MediaTypeImageIndex, `null`},
		"no JSON":                  {v1.MediaTypeImageManifest, `{"schemaVersion":2,`},
		"a page":                   {"text/html", `<html>log in</html>`},
		"a page as JSON":           {"text/html", `"log in"`},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				i := o.push("v1", 1000)
				p := start(t, o.URL, t.TempDir())
				if a := get(t, p.tag("v1")); a.status != 200 {
					t.Fatalf("before: %s", a)
				}
				o.pushManifest("v1", test.kind, test.content)
				o.pushManifest("new", test.kind, test.content)
				if a := get(t, p.tag("new")); a.status == 200 {
					t.Errorf("a new tag: %s", a)
				}
				var a answer
				old := func() bool { a = get(t, p.tag("v1")); return a.status == 200 && a.digest() != i.manifest.String() }
				if within(t, 1500*time.Millisecond, old) { // the last answer is reused for a second
					t.Errorf("the tag refers to something else than a manifest: %s", a)
				}
				o.when("/", status(http.StatusServiceUnavailable))
				if !within(t, clientPatience, func() bool { a = get(t, p.tag("v1")); return a.stale() }) || a.digest() != i.manifest.String() {
					t.Errorf("in an outage: %s, want %s", a, i.manifest)
				}
			})
		})
	}
}

// TestMediaType: a manifest always keeps the upstream's media type, by tag and by digest.
func TestMediaType(t *testing.T) {
	const ambiguous = `{"schemaVersion":2,"config":` + emptyConfig + `,"layers":[],"manifests":[]}`
	for name, test := range map[string]struct{ kind, content string }{
		"an image that looks like an index": {v1.MediaTypeImageManifest, ambiguous},
		"an index that looks like an image": {v1.MediaTypeImageIndex, ambiguous},
		"an image without its type":         {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + emptyConfig + `,"layers":[]}`},
		"an index without its type":         {v1.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]}`},
		"docker without its type":           {dockerManifest, `{"schemaVersion":2,"config":` + emptyConfig + `,"layers":[]}`},
		"no schemaVersion":                  {v1.MediaTypeImageManifest, fmt.Sprintf(`{"mediaType":%q,"config":%s,"layers":[]}`, v1.MediaTypeImageManifest, emptyConfig)},
		"no layers":                         {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + emptyConfig + `}`},
		"the largest for containerd":        {v1.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]` + strings.Repeat(" ", 4*1048*1048-34) + `}`},
		"another than its own":              {dockerManifest, fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":%s,"layers":[]}`, v1.MediaTypeImageManifest, emptyConfig)},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o, volume := newOrigin(t), t.TempDir()
				blob := o.pushManifest("v1", test.kind, test.content)
				p := start(t, o.URL, volume)
				check := func(state string) {
					t.Helper()
					for _, reference := range []string{"v1", blob.String(), "v1", blob.String()} {
						for _, method := range []string{http.MethodGet, http.MethodHead} {
							a := ask(t.Context(), method, p.tag(reference))
							if a.status != 200 || a.header.Get("Content-Type") != test.kind {
								t.Errorf("%s, %s %s: %s, Content-Type %q, want %q", state, method, reference, a, a.header.Get("Content-Type"), test.kind)
								return
							}
						}
					}
				}
				check("first")
				p.stop()
				p = start(t, o.URL, volume)
				check("after a restart")
			})
		})
	}
}

// TestAccept: requests for manifests contain containerd's Accept header, because some registries,
// such as ACR (oras-go#83), convert manifests. Requests for blobs also contain one, because some
// firewalls require it.
func TestAccept(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o, seen := newOrigin(t), sync.Map{}
		i := o.push("v1", 1000)
		o.when(" /v2/"+app, func(_ http.ResponseWriter, r *http.Request) bool {
			seen.Store(r.URL.Path, r.Header.Get("Accept"))
			return false
		})
		accepted := func(path string) any {
			accept, _ := seen.Load("/v2/" + app + path)
			return accept
		}
		host := docker.RegistryHost{
			Client: &http.Client{Transport: registry.NewTransport()}, Scheme: "http", Host: strings.TrimPrefix(o.URL, "http://"),
			Path: "/v2", Capabilities: docker.HostCapabilityResolve | docker.HostCapabilityPull,
		}
		containerd := docker.NewResolver(docker.ResolverOptions{Hosts: func(string) ([]docker.RegistryHost, error) {
			return []docker.RegistryHost{host}, nil
		}})
		if _, _, err := containerd.Resolve(t.Context(), "upstream.example/"+app+":v1"); err != nil {
			t.Fatal(err)
		}
		want := accepted("/manifests/v1")
		p := start(t, o.URL, t.TempDir())
		for range 2 { // GET, then HEAD of stored content
			<-time.After(2 * time.Second)
			get(t, p.tag("v1"))
			if accept := accepted("/manifests/v1"); accept != want {
				t.Errorf("for a manifest %q, containerd %q", accept, want)
			}
		}
		get(t, p.blob(i.layer.String()))
		if accept := accepted("/blobs/" + i.layer.String()); accept != "*/*" {
			t.Errorf("for a blob %q", accept)
		}
	})
}
