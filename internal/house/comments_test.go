package house

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxWidth is the limit for a line that contains only a comment, and for a line of prose in a
// document. A tab counts as one column.
const maxWidth = 100

// exempt lists path prefixes of files whose comments may be wide: generated code,
// and the modules of the node image (each change makes the image build take minutes).
var exempt = []string{"api/v1alpha3/zz_generated", "kind/nodeimage/modules/"}

// wideComments finds comment lines that are too wide, except directives and URLs.
func wideComments(t tree) []string {
	var problems []string
	for _, f := range t.goFiles() {
		inside := func(folder string) bool { return strings.HasPrefix(f.path, folder) }
		if slices.ContainsFunc(exempt, inside) || strings.HasPrefix(f.text, generated) {
			continue
		}
		lines := strings.Split(f.text, "\n")
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				n := strings.Count(f.text[:c.Pos()-1], "\n")
				directive := strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//nolint")
				ownLine := strings.HasPrefix(strings.TrimLeft(lines[n], "\t"), "//")
				if ownLine && !directive && !strings.Contains(c.Text, "://") && utf8.RuneCountInString(lines[n]) > maxWidth {
					problems = append(problems, fmt.Sprintf("%s:%d: comment is wider than %d columns", f.path, n+1, maxWidth))
				}
			}
		}
	}
	return problems
}
