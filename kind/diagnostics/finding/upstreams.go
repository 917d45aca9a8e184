package finding

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// slowAnswer is the time in seconds after which an answer of an upstream counts as slow.
const slowAnswer = 5.0

func upstreams(b *bundle.Bundle) (all []Finding) {
	for _, upstream := range b.Upstreams {
		if !upstream.Running() {
			all = append(all, problem(upstream.File(bundle.StateFile), "testbed up",
				"The upstream %s is not running: %s.", upstream.Host, upstream.State))
		}
		all = append(all, answers(b, upstream)...)
	}
	return all
}

func answers(b *bundle.Bundle, upstream bundle.Upstream) []Finding {
	failed, slow := count{}, count{}
	for _, r := range upstream.Records.Pulls() {
		if !recent(b, r.Time) {
			continue
		}
		switch who := timeline.Asker(b, r); {
		case timeline.Failed(r):
			failed.add(outcome(r)+" to the "+who, r.Time)
		case r.Seconds >= slowAnswer:
			slow.add(fmt.Sprintf("%s of a %s to the %s", r.Method, r.Kind, who), r.Time)
		}
	}
	file, since := upstream.File(bundle.AccessFile), clock(b.Since)
	return append(failed.finding(file, "The upstream %s answered requests with errors since %s.", upstream.Host, since),
		slow.finding(file, "The upstream %s took more than %.0f s to answer requests since %s.", upstream.Host, slowAnswer, since)...)
}

func outcome(r accesslog.Record) string {
	text := fmt.Sprintf("status %d for a %s", r.Status, r.Kind)
	if r.Aborted {
		text = fmt.Sprintf("an interrupted answer for a %s", r.Kind)
	}
	if len(r.Faults) > 0 {
		text += " (by fault " + strings.Join(r.Faults, ", ") + ")"
	}
	return text
}

// writeErrors lists what a cache logs if it cannot write to its volume. Failed reads do not match.
var writeErrors = []struct {
	message      *regexp.Regexp
	problem, fix string
}{
	{regexp.MustCompile("no space left on device"), "it is full", "increase spec.caches[].volume.size, or lower garbageCollection.ttl"},
	{writeError("read-only file system"), "it is read-only", "see the kernel log of its node"},
	{
		writeError("permission denied"), "permission denied",
		"check the owner and mode of the volume's root; the pod's fsGroup sets them at start if the volume supports it",
	},
}

// writeError matches the errors of a stock image, which name the whole path, and of ours, which
// names it below the root of the volume.
func writeError(why string) *regexp.Regexp {
	return regexp.MustCompile(`\b((mkdir|rename|write|unlinkat) /var/lib/registry\b|` +
		`(mkdirat|renameat) (docker|registry-cache)/|openat registry-cache/)[^:]*: ` + why)
}

// writeErrorAge is the maximum age of a reported write error. It cannot be short: a cache logs such
// an error only during a pull, and the bundle is collected later.
const writeErrorAge = 2 * time.Minute

func cacheLogs(b *bundle.Bundle) (all []Finding) {
	for _, file := range timeline.CacheLogs(b) {
		logged, lastFailed := count{}, make([]time.Time, len(writeErrors))
		for _, line := range b.Log(file, logline.Container) {
			text := line.Text("err.code", "err.detail", "err.message", "error", "http.response.status")
			if line.Level == logline.Error && recent(b, line.Time) {
				logged.add(text, line.Time)
			}
			for i, e := range writeErrors {
				if e.message.MatchString(text) && b.Collected.Sub(line.Time) < writeErrorAge {
					lastFailed[i] = line.Time
				}
			}
		}
		pod := path.Base(path.Dir(file)) // shoot/logs/<namespace>/<pod>/<container>.log
		for i, at := range lastFailed {
			if !at.IsZero() {
				all = append(all, problem(file, writeErrors[i].fix,
					"The volume of %s is not writable, last at %s: %s.", pod, clock(at), writeErrors[i].problem))
			}
		}
		all = append(all, logged.finding(file, "%s logged errors since %s.", pod, clock(b.Since))...)
	}
	return all
}
