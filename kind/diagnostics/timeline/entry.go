package timeline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// Entry is something that happened.
type Entry struct {
	Time time.Time
	// Source says where it happened, for example "worker containerd", and File which file of the bundle says so.
	Source, File string
	Level        logline.Level
	// Text is one line.
	Text string
	// Count is how often it happened in a row, the last time at Last.
	Count int
	Last  time.Time
}

const (
	// maxText bounds a line; the file has all of it.
	maxText = 400
	// pause is how long the same thing may be away and still counts as repeated.
	pause = 30 * time.Second
)

// Build returns all that happened, in the order of time; what repeats itself is one entry.
func Build(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, source := range []func(*bundle.Bundle) []Entry{faults, objects, events, nodes, upstreams, caches, controlPlane} {
		all = append(all, source(b)...)
	}
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Time.IsZero() })
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source))
	})
	return collapse(all)
}

// Since returns the entries that happened at that time or later, also those that only went on then, at most limit, the newest.
func Since(all []Entry, at time.Time, limit int) []Entry {
	recent := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Last.Before(at) })
	return recent[max(0, len(recent)-limit):]
}

// collapse makes one entry of those that say the same but for numbers, as retries do.
func collapse(all []Entry) []Entry {
	var kept []Entry
	last := map[string]int{}
	for _, e := range all {
		e.Text, e.Last = oneLine(e.Text), e.Time
		if e.Count == 0 {
			e.Count = 1
		}
		key := e.Source + "\n" + Shape(e.Text)
		if i, found := last[key]; found && e.Time.Sub(kept[i].Last) <= pause {
			kept[i].Count += e.Count
			kept[i].Last = e.Time
			continue
		}
		last[key] = len(kept)
		kept = append(kept, e)
	}
	return kept
}

// changing is what differs between repetitions: identities, digests, ports of clients, numbers. The first group is an address, which
// tells repetitions apart.
var changing = regexp.MustCompile(`(\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d{1,4}\b)?)|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|` +
	`\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?(?:ms|µs|s|m)?\b`)

// Shape is what texts have in common that differ only in numbers and identities, as those of retries do.
func Shape(text string) string {
	return changing.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Count(found, ".") == 3 {
			return found
		}
		return "#"
	})
}

// longDigest is a digest of which the beginning is enough to find it again.
var longDigest = regexp.MustCompile(`\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b`)

func oneLine(text string) string {
	text = longDigest.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
