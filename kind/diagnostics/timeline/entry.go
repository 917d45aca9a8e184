package timeline

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// Entry is a line of the timeline.
type Entry struct {
	Time time.Time
	// Source names the origin, for example "worker containerd". File is a path in the bundle.
	Source, File string
	Level        logline.Level
	// Text is one line.
	Text string
	// Count is the number of occurrences. Last is the time of the last occurrence.
	Count int
	Last  time.Time
}

const (
	// maxText is the maximum length of Entry.Text in bytes. Entry.File contains the full text.
	maxText = 400
	// repeatGap is the longest time between two repetitions that are merged into one entry.
	repeatGap = 30 * time.Second
)

// Build returns the timeline of a bundle, sorted by time. Repetitions are merged into one entry.
func Build(b *bundle.Bundle) (all []Entry) {
	for _, source := range []func(*bundle.Bundle) []Entry{faults, objects, events, logs, upstreams} {
		all = append(all, source(b)...)
	}
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Time.IsZero() })
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source))
	})
	return collapse(all)
}

// Since returns the entries whose last occurrence was at the given time or later. If there are more
// than limit, it returns only the newest ones.
func Since(all []Entry, at time.Time, limit int) []Entry {
	recent := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Last.Before(at) })
	return recent[max(0, len(recent)-limit):]
}

// collapse merges entries of one source whose texts have the same Shape, for example retries.
func collapse(all []Entry) (kept []Entry) {
	last := map[string]int{}
	for _, e := range all {
		e.Text, e.Last = oneLine(e.Text), e.Time
		e.Count = max(1, e.Count)
		key := e.Source + "\n" + Shape(e.Text)
		if i, found := last[key]; found && e.Time.Sub(kept[i].Last) <= repeatGap {
			kept[i].Count += e.Count
			kept[i].Last = e.Time
			continue
		}
		last[key] = len(kept)
		kept = append(kept, e)
	}
	return kept
}

// changing matches the parts of a text that differ between repetitions: UUIDs, digests, ephemeral
// ports, numbers. The first group is an IP address, which Shape keeps.
var changing = regexp.MustCompile(`(\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d{1,4}\b)?)|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|` +
	`\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?(?:ms|µs|s|m)?\b`)

// Shape replaces numbers, digests and UUIDs in a text, so that the texts of retries become equal.
func Shape(text string) string {
	return changing.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Count(found, ".") == 3 {
			return found
		}
		return "#"
	})
}

// longDigest matches a digest. The first 12 digits are enough to find the digest in the file.
var longDigest = regexp.MustCompile(`\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b`)

func oneLine(text string) string {
	text = longDigest.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

const clock = "15:04:05.000"

var marks = map[logline.Level]string{logline.Error: "E", logline.Warning: "W"}

// Write prints one line for each entry, and a heading for each day. Times are UTC.
func Write(w io.Writer, entries []Entry) error {
	day, width := "", 0
	for _, e := range entries {
		width = max(width, len(e.Source))
	}
	for _, e := range entries {
		if now := e.Time.UTC().Format(time.DateOnly); now != day {
			day = now
			if _, err := fmt.Fprintf(w, "--- %s UTC\n", day); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "%s %1s %-*s  %s\n", e.Time.UTC().Format(clock), marks[e.Level], width, e.Source, e.Text+e.repetitions()); err != nil {
			return err
		}
	}
	return nil
}

func (e Entry) repetitions() string {
	if e.Count < 2 {
		return ""
	}
	if e.Last.Sub(e.Time) < time.Millisecond {
		return fmt.Sprintf("  (%d times)", e.Count)
	}
	return fmt.Sprintf("  (%d times until %s)", e.Count, e.Last.UTC().Format(clock))
}
