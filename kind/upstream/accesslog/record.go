package accesslog

import (
	"net/http"
	"strings"
	"time"

	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/gorilla/mux"
)

// Kind says what a request was about.
type Kind string

// The kinds of requests.
const (
	KindManifest Kind = "manifest" // /v2/<repository>/manifests/<tag or digest>
	KindBlob     Kind = "blob"     // /v2/<repository>/blobs/<digest>
	KindBase     Kind = "base"     // /v2/, the API version check
	KindOther    Kind = "other"    // uploads, tag lists, the catalog, anything else
)

// Asker says who made a request.
type Asker string

// The askers that AskerOf knows.
const (
	AskerCache   Asker = "cache"   // a pull-through cache
	AskerNode    Asker = "node"    // containerd, without a cache between
	AskerHarness Asker = "harness" // the testbed and its scenarios
	AskerOther   Asker = "other"   // somebody else, for example a person with curl
)

// Record is one answered request.
type Record struct {
	// Time is when the request arrived, Seconds how long the answer took.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	Method  string    `json:"method"`
	// Host is the name that the server was asked by; for a request to a proxy, where it is to go.
	Host string `json:"host"`
	// Path is the path of the URL, Query its raw query.
	Path  string `json:"path"`
	Query string `json:"query,omitempty"`
	Kind  Kind   `json:"kind"`
	// Repository is set for manifests and blobs, and for uploads and tag lists.
	Repository string `json:"repository,omitempty"`
	// Reference is the tag or digest of a manifest, the digest of a blob.
	Reference string `json:"reference,omitempty"`
	Status    int    `json:"status"`
	// Bytes counts what was written of the answer's body; 0 for a HEAD request.
	Bytes int64 `json:"bytes"`
	// Aborted: the handler cut the connection instead of ending the answer.
	Aborted bool `json:"aborted,omitempty"`
	// Faults are those that changed the answer on purpose, by their IDs.
	Faults []string `json:"faults,omitempty"`
	// Authorization: the request carried credentials of some kind. What they were is never recorded.
	Authorization bool   `json:"authorization,omitempty"`
	UserAgent     string `json:"userAgent"`
	RemoteAddr    string `json:"remoteAddr"`
	Scheme        string `json:"scheme"`
	Asker         Asker  `json:"asker"`
}

// AskerOf tells by the User-Agent header who asks:
//
//   - containerd sends "containerd/<version>" with every registry request
//     (containerd v2.3.4, core/remotes/docker/resolver.go, requestHeaders);
//   - go-containerregistry sends "go-containerregistry", with a version if it knows its own,
//     after the name of the program if one is set (v0.22.1, pkg/v1/remote/transport/useragent.go);
//     the testbed pushes with it, and names itself "registry-cache-testbed/" otherwise;
//   - distribution's proxy sets no header, so that net/http sends "Go-http-client/<version>"
//     (distribution v3.1.2, registry/proxy/proxyregistry.go); "registry-cache/" and
//     "distribution/" are accepted in case a cache starts to name itself.
func AskerOf(userAgent string) Asker {
	switch {
	case strings.HasPrefix(userAgent, "containerd/"):
		return AskerNode
	case strings.Contains(userAgent, "go-containerregistry"), strings.HasPrefix(userAgent, "registry-cache-testbed/"):
		return AskerHarness
	case hasAnyPrefix(userAgent, "Go-http-client/", "registry-cache/", "distribution/"):
		return AskerCache
	default:
		return AskerOther
	}
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// newRecord says everything about a request that is known before it is answered.
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

// KindOf says what a request is about.
func KindOf(r *http.Request) Kind {
	kind, _, _ := classify(r)
	return kind
}

// classify asks distribution's own routes.
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
