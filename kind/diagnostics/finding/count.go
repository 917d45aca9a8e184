package finding

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
)

// count counts texts by timeline.Shape and keeps the newest text of each shape.
type count map[string]*counted

type counted struct {
	text string
	n    int
	last time.Time
}

func (c count) add(text string, at time.Time) {
	shape := timeline.Shape(text)
	if c[shape] == nil {
		c[shape] = &counted{}
	}
	c[shape].n++
	if !at.Before(c[shape].last) {
		c[shape].last, c[shape].text = at, text
	}
}

// finding returns a hint with the texts as details, or nothing if there are none.
func (c count) finding(file, format string, args ...any) []Finding {
	if len(c) == 0 {
		return nil
	}
	return []Finding{{Problem: fmt.Sprintf(format, args...), Details: c.lines(), File: file}}
}

// lines returns the texts with their counts and times. The newest comes first, since old events are
// not the cause of the current state.
func (c count) lines() []string {
	var all []counted
	for _, one := range c {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.text, b.text)) })
	var lines []string
	for _, one := range all {
		if one.n > 1 {
			lines = append(lines, fmt.Sprintf("%d times, last at %s: %s", one.n, clock(one.last), one.text))
		} else {
			lines = append(lines, fmt.Sprintf("at %s: %s", clock(one.last), one.text))
		}
	}
	return lines
}
