package finding

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// slowAnswer is from when on an answer of an upstream is slow, in seconds: it is on the same machine.
const slowAnswer = 5.0

// upstreams reports upstreams that do not run, and what caches and nodes got from them lately that was not right.
func upstreams(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, upstream := range b.Upstreams {
		if !upstream.Running() {
			all = append(all, Finding{
				Certain: true, Problem: fmt.Sprintf("The upstream %s does not run: %s.", upstream.Host, upstream.State), Fix: "testbed up",
				File: upstream.File(bundle.StateFile),
			})
		}
		all = append(all, answers(b, upstream)...)
	}
	return all
}

// answers sums up the requests that failed or were slow, by what they have in common.
func answers(b *bundle.Bundle, upstream bundle.Upstream) []Finding {
	failed, slow := count{}, count{}
	for _, r := range upstream.Records.Pulls() {
		if !recent(b, r.Time) {
			continue
		}
		who := string(r.Asker)
		if node := b.NodeAt(r.RemoteAddr); node != "" {
			who += " on " + node
		}
		switch {
		case timeline.Failed(r):
			failed.add(outcome(r)+" to the "+who, r.Time)
		case r.Seconds >= slowAnswer:
			slow.add(fmt.Sprintf("%s of a %s to the %s", r.Method, r.Kind, who), r.Time)
		}
	}
	var all []Finding
	for _, group := range []struct {
		problem string
		count   count
	}{{"answered requests with errors", failed}, {fmt.Sprintf("took more than %.0f s to answer requests", slowAnswer), slow}} {
		if len(group.count) > 0 {
			all = append(all, Finding{
				Problem: fmt.Sprintf("The upstream %s %s since %s.", upstream.Host, group.problem, clock(b.Since)),
				Details: group.count.lines(), File: upstream.File(bundle.AccessFile),
			})
		}
	}
	return all
}

func outcome(r accesslog.Record) string {
	text := fmt.Sprintf("status %d for a %s", r.Status, r.Kind)
	if r.Aborted {
		text = fmt.Sprintf("an answer that was cut off for a %s", r.Kind)
	}
	if len(r.Faults) > 0 {
		text += " (by fault " + strings.Join(r.Faults, ", ") + ")"
	}
	return text
}

// refusals are what a cache logs when it cannot write to its volume, as the system says it. That a file cannot be read is no refusal.
var refusals = []struct {
	says         *regexp.Regexp
	problem, fix string
}{
	{regexp.MustCompile("no space left on device"), "was full", "let spec.caches[].volume.size grow, or lower garbageCollection.ttl"},
	{refusal("read-only file system"), "was read-only", "the kernel's log of its node says why"},
	{
		refusal("permission denied"), "did not let it write",
		"see owner and mode of the volume's folder; the pod's fsGroup sets them when it starts, where the volume can",
	},
}

// refusal is how Go says why a call that writes below the volume's folder failed.
func refusal(why string) *regexp.Regexp {
	return regexp.MustCompile(`\b(mkdir|rename|write|unlinkat) /var/lib/registry\b[^:]*: ` + why)
}

// cacheLogs sums up the errors that caches logged lately.
func cacheLogs(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, file := range timeline.CacheLogs(b) {
		said, refused := count{}, make([]time.Time, len(refusals))
		for _, line := range b.ContainerLog(file) {
			text := line.Text("err.code", "err.detail", "error", "http.response.status")
			if line.Level == logline.Error && recent(b, line.Time) {
				said.add(text, line.Time)
			}
			for i, r := range refusals {
				if r.says.MatchString(text) && b.Collected.Sub(line.Time) < refusedFor {
					refused[i] = line.Time
				}
			}
		}
		for i, at := range refused {
			if !at.IsZero() {
				all = append(all, Finding{
					Certain: true, Fix: refusals[i].fix, File: file,
					Problem: fmt.Sprintf("The volume of %s %s: it could not store anything, last at %s.", podOf(file), refusals[i].problem, clock(at)),
				})
			}
		}
		if len(said) > 0 {
			all = append(all, Finding{
				Problem: fmt.Sprintf("%s has logged errors since %s.", podOf(file), clock(b.Since)), Details: said.lines(), File: file,
			})
		}
	}
	return all
}

// refusedFor is how long ago a cache may have said so: it says it with the next pull only, and a bundle is made minutes after that.
const refusedFor = 2 * time.Minute

// podOf is the pod of shoot/logs/<namespace>/<pod>/<container>.log.
func podOf(file string) string {
	parts := strings.Split(file, "/")
	return parts[max(0, len(parts)-2)]
}
