package timeline

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Pull is one pull of an image in the journal of containerd.
type Pull struct {
	Image string
	// Begun or Ended is zero if that time is not in the journal.
	Begun, Ended time.Time
	// Failure is why the pull failed, or "".
	Failure string
}

// Took returns the duration of the pull, or 0 if it is unknown.
func (p Pull) Took() time.Duration {
	if p.Begun.IsZero() || p.Ended.IsZero() {
		return 0
	}
	return p.Ended.Sub(p.Begun)
}

// Pulls returns the pulls in a journal of containerd, sorted by their ends. Pulls that have not
// ended are last. Concurrent pulls of the same image count as one. At a restart of containerd, all
// open pulls count as failed.
func Pulls(journal []logline.Line) []Pull {
	var all, open []Pull
	for _, line := range journal {
		if logline.ContainerdStarts(line.Message) {
			for _, pull := range open {
				pull.Ended, pull.Failure = line.Time, "interrupted by a restart of containerd"
				all = append(all, pull)
			}
			open = nil
			continue
		}
		image, state, ok := logline.PullMessage(line.Message)
		if !ok {
			continue
		}
		pull := Pull{Image: image}
		i := slices.IndexFunc(open, func(p Pull) bool { return p.Image == image })
		if state == logline.PullBegan {
			if i < 0 {
				pull.Begun = line.Time
				open = append(open, pull)
			}
			continue
		}
		if i >= 0 {
			pull = open[i]
			open = slices.Delete(open, i, i+1)
		}
		pull.Ended = line.Time
		if state == logline.PullFailed {
			pull.Failure = Reason(line.Fields["error"])
		}
		all = append(all, pull)
	}
	return append(all, open...)
}

// Reason returns the last part of an error of containerd. The parts before it only repeat the
// image.
func Reason(text string) string {
	for _, head := range []string{"failed to do request: ", "rpc error: code = Unknown desc = "} {
		text = strings.TrimPrefix(text, head)
	}
	if i := strings.LastIndex(text, `": `); i >= 0 && strings.TrimSpace(text[i+3:]) != "" {
		text = text[i+3:]
	}
	if text == "" {
		return "no reason given"
	}
	return text
}

func pulls(b *bundle.Bundle, node bundle.Node) (all []Entry) {
	for _, pull := range Pulls(b.Journal(node, "containerd")) {
		entry := Entry{Time: cmp.Or(pull.Begun, pull.Ended), Source: b.ShortName(node.Name) + " pull", Level: logline.Info}
		entry.File = node.JournalFile("containerd")
		switch {
		case pull.Ended.IsZero():
			entry.Level, entry.Text = logline.Warning, pull.Image+" has not ended"
		case pull.Failure != "":
			entry.Level, entry.Text = logline.Error, fmt.Sprintf("%s failed after %.2fs: %s", pull.Image, pull.Took().Seconds(), pull.Failure)
		default:
			entry.Text = fmt.Sprintf("%s pulled in %.2fs", pull.Image, pull.Took().Seconds())
		}
		all = append(all, entry)
	}
	return all
}

// slowAnswer is the time in seconds after which an answer of an upstream counts as slow.
const slowAnswer = 1.0

// upstreams returns entries for requests that failed, were aborted or changed by a fault, or were
// slow, and for each image manifest that a node requested from the upstream itself.
func upstreams(b *bundle.Bundle) (all []Entry) {
	for _, upstream := range b.Upstreams {
		short, _, _ := strings.Cut(upstream.Host, ".")
		for _, r := range upstream.Records.Pulls() {
			bad := Failed(r)
			direct := r.Asker == accesslog.AskerNode && r.Kind == accesslog.KindManifest
			if !bad && !direct && r.Seconds < slowAnswer {
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
