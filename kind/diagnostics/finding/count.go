package finding

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
)

// count counts texts that differ only in numbers and identities, and keeps the last of them.
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

// lines are the texts with their counts and times, the latest first: what is long over is not the cause of now.
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
