package accesslog

import (
	"net/http"
	"strings"
	"time"

	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/gorilla/mux"
)

// Kind is the kind of a request.
type Kind string

// The kinds of requests.
const (
	KindManifest Kind = "manifest" // /v2/<repository>/manifests/<tag or digest>
	KindBlob     Kind = "blob"     // /v2/<repository>/blobs/<digest>
	KindBase     Kind = "base"     // /v2/, the API version check
	KindOther    Kind = "other"    // uploads, tag lists, the catalog, anything else
)

// Asker is the kind of client that sent a request.
type Asker string

// The results of AskerOf.
const (
	AskerCache   Asker = "cache"   // a pull-through cache
	AskerNode    Asker = "node"    // containerd, without a cache
	AskerHarness Asker = "harness" // the testbed and its scenarios
	AskerOther   Asker = "other"   // any other client, for example curl
)

// Record describes one request that has ended.
type Record struct {
	// Time is the arrival of the request. Seconds is the duration of the response.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	Method  string    `json:"method"`
	Host    string    `json:"host"` // for a request to a proxy, the target
	Path    string    `json:"path"`
	Query   string    `json:"query,omitempty"` // the raw query of the URL
	Kind    Kind      `json:"kind"`
	// Repository is set for manifests, blobs, uploads and tag lists.
	Repository string `json:"repository,omitempty"`
	// Reference is the tag or digest of a manifest, or the digest of a blob.
	Reference string `json:"reference,omitempty"`
	Status    int    `json:"status"`
	// Bytes is the size of the body that the handler wrote, even if it is not sent (HEAD).
	Bytes int64 `json:"bytes"`
	// Aborted is set if the handler cut the connection before the end of the response.
	Aborted bool `json:"aborted,omitempty"`
	// Faults are the IDs of the faults that changed the response.
	Faults []string `json:"faults,omitempty"`
	// Authorization is set if the request had a header for credentials. Its value is never recorded.
	Authorization bool   `json:"authorization,omitempty"`
	UserAgent     string `json:"userAgent"`
	RemoteAddr    string `json:"remoteAddr"`
	Scheme        string `json:"scheme"`
	Asker         Asker  `json:"asker"`
}

// AskerOf derives the asker from the User-Agent header:
//
//   - containerd sends "containerd/<version>" with every registry request (containerd v2.3.4,
//     core/remotes/docker/resolver.go, requestHeaders);
//   - the testbed pushes with go-containerregistry, which sends "go-containerregistry" and its
//     version, after the name of the program if one is set (v0.22.1,
//     pkg/v1/remote/transport/useragent.go); other requests of the testbed send
//     "registry-cache-testbed/";
//   - a cache sends "registry-cache/<version>" (package registry/upstream);
//   - distribution's proxy sets no header, so net/http sends "Go-http-client/<version>"
//     (distribution v3.1.2, registry/proxy/proxyregistry.go); "distribution/" is accepted in case
//     distribution starts to send its name.
func AskerOf(userAgent string) Asker {
	switch {
	case strings.HasPrefix(userAgent, "containerd/"):
		return AskerNode
	case strings.Contains(userAgent, "go-containerregistry"), strings.HasPrefix(userAgent, "registry-cache-testbed/"):
		return AskerHarness
	case strings.HasPrefix(userAgent, "Go-http-client/"), strings.HasPrefix(userAgent, "registry-cache/"),
		strings.HasPrefix(userAgent, "distribution/"):
		return AskerCache
	default:
		return AskerOther
	}
}

func newRecord(r *http.Request, now time.Time) Record {
	record := Record{
		Time: now, Method: r.Method, Host: r.Host, Path: r.URL.Path, Query: r.URL.RawQuery, UserAgent: r.UserAgent(),
		RemoteAddr: r.RemoteAddr, Scheme: "http", Asker: AskerOf(r.UserAgent()),
	}
	if r.TLS != nil {
		record.Scheme = "https"
	}
	record.Authorization = r.Header.Get("Authorization") != "" || r.Header.Get("Proxy-Authorization") != ""
	record.Kind, record.Repository, record.Reference = classify(r)
	return record
}

// KindOf returns the kind of a request.
func KindOf(r *http.Request) Kind {
	kind, _, _ := classify(r)
	return kind
}

// classify returns what a request is for, according to distribution's own routes.
func classify(r *http.Request) (kind Kind, repository, reference string) {
	var match mux.RouteMatch
	if !v2.Router().Match(r, &match) || match.Route == nil {
		return KindOther, "", ""
	}
	repository = match.Vars["name"]
	switch match.Route.GetName() {
	case v2.RouteNameBase:
		return KindBase, "", ""
	case v2.RouteNameManifest:
		return KindManifest, repository, match.Vars["reference"]
	case v2.RouteNameBlob:
		return KindBlob, repository, match.Vars["digest"]
	default:
		return KindOther, repository, ""
	}
}
