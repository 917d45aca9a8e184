package finding

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
)

// count counts texts that differ only in numbers and identities, and keeps the first of them.
type count map[string]*counted

type counted struct {
	text string
	n    int
}

func (c count) add(text string) {
	shape := timeline.Shape(text)
	if c[shape] == nil {
		c[shape] = &counted{text: text}
	}
	c[shape].n++
}

// lines are the texts with their counts, the most frequent first.
func (c count) lines() []string {
	var all []counted
	for _, one := range c {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Or(b.n-a.n, cmp.Compare(a.text, b.text)) })
	var lines []string
	for _, one := range all {
		if one.n > 1 {
			one.text = fmt.Sprintf("%d times: %s", one.n, one.text)
		}
		lines = append(lines, one.text)
	}
	return lines
}
