package timeline

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// slow is when an answer of an upstream is slow, in seconds.
const slow = 1.0

// upstreams returns the requests that failed, were aborted, changed by a fault, or slow, and each
// request of a node for a manifest, since that is a pull without a cache.
func upstreams(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, upstream := range b.Upstreams {
		short, _, _ := strings.Cut(upstream.Host, ".")
		for _, r := range upstream.Records.Pulls() {
			bad := Failed(r)
			direct := r.Asker == accesslog.AskerNode && r.Kind == accesslog.KindManifest
			if !bad && !direct && r.Seconds < slow {
				continue
			}
			entry := Entry{
				Time: r.Time, Source: "upstream " + short, File: upstream.File(bundle.AccessFile), Level: logline.Info, Text: request(b, r),
			}
			if bad {
				entry.Level = logline.Error
			}
			all = append(all, entry)
		}
	}
	return all
}

// Failed reports whether a request failed. A 401 to a request without credentials is a challenge,
// and a 404 to a HEAD is a valid answer: neither counts as a failure.
func Failed(r accesslog.Record) bool {
	if r.Aborted || len(r.Faults) > 0 {
		return true
	}
	if r.Status == http.StatusUnauthorized && !r.Authorization || r.Status == http.StatusNotFound && r.Method == http.MethodHead {
		return false
	}
	return r.Status >= http.StatusBadRequest
}

// Asker returns who sent a request, for example "cache on worker".
func Asker(b *bundle.Bundle, r accesslog.Record) string {
	if node := b.NodeAt(r.RemoteAddr); node != "" {
		return string(r.Asker) + " on " + node
	}
	return string(r.Asker)
}

func request(b *bundle.Bundle, r accesslog.Record) string {
	what := r.Path
	if r.Repository != "" && r.Reference != "" {
		what = fmt.Sprintf("%s of %s %s", r.Kind, r.Repository, r.Reference)
	}
	text := fmt.Sprintf("%s: %s %s: status %d, %d bytes, %.2fs", Asker(b, r), r.Method, what, r.Status, r.Bytes, r.Seconds)
	if r.Aborted {
		text += ", aborted"
	}
	if len(r.Faults) > 0 {
		text += ", changed by fault " + strings.Join(r.Faults, ", ")
	}
	return text
}
