package timeline

import (
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// slow is from when on an answer of an upstream is told of, in seconds.
const slow = 1.0

// upstreams takes the requests of caches and nodes that failed, were cut, changed by a fault, or slow; and each manifest that a
// node asked for itself, since that is a pull without a cache.
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

// Failed says whether a request did not get what it asked for. A 401 without credentials is how a client learns that it has to
// show some, a 404 of a HEAD is how one learns that something is not there.
func Failed(r accesslog.Record) bool {
	if r.Aborted || len(r.Faults) > 0 {
		return true
	}
	if r.Status == http.StatusUnauthorized && !r.Authorization || r.Status == http.StatusNotFound && r.Method == http.MethodHead {
		return false
	}
	return r.Status >= http.StatusBadRequest
}

func request(b *bundle.Bundle, r accesslog.Record) string {
	text := string(r.Asker)
	if node := b.NodeAt(r.RemoteAddr); node != "" {
		text += " on " + node
	}
	what := r.Path
	if r.Repository != "" && r.Reference != "" {
		what = fmt.Sprintf("%s of %s %s", r.Kind, r.Repository, r.Reference)
	}
	text += fmt.Sprintf(": %s %s: status %d, %d bytes, %.2fs", r.Method, what, r.Status, r.Bytes, r.Seconds)
	if r.Aborted {
		text += ", cut off"
	}
	if len(r.Faults) > 0 {
		text += ", changed by fault " + strings.Join(r.Faults, ", ")
	}
	return text
}

// ordinary is what every cache says when it starts.
var ordinary = regexp.MustCompile(`^(Registry does not implement|.*OTEL)`)

// starts are lines that tell that a cache has started.
var starts = regexp.MustCompile(`^(listening on|Registry configured as a proxy cache)`)

// caches takes errors and warnings of the caches' logs, also of the process before a restart, and when one began to listen.
func caches(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, file := range CacheLogs(b) {
		pod := path.Base(path.Dir(file))
		for _, line := range b.ContainerLog(file) {
			if ordinary.MatchString(line.Message) || line.Level == logline.Info && !starts.MatchString(line.Message) {
				continue
			}
			all = append(all, Entry{Time: line.Time, Source: "cache " + pod, File: file, Level: line.Level, Text: line.Text(shown...)})
		}
	}
	return all
}

// CacheLogs are the files with logs of caches and of the cleaner of nodes.
func CacheLogs(b *bundle.Bundle) []string {
	files, err := fs.Glob(b.Files, path.Join(bundle.ShootFolder, "logs", "kube-system", "registry-*", "*.log"))
	if err != nil {
		return nil // the pattern is a good one
	}
	return files
}
