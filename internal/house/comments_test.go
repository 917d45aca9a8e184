package house

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxCommentWidth limits a comment on its own line. A tab counts as one column.
const maxCommentWidth = 100

// exempt are folders whose comments may be wide: generated code, the registry, which is rewritten
// separately, and modules of the node image, because each change causes a build of minutes.
var exempt = []string{"api/v1alpha3/zz_generated", "cmd/registry-cache/registry/", "kind/nodeimage/modules/"}

// wideComments finds comments on their own line that are too wide. Directives and URLs cannot wrap.
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
				if ownLine && !directive && !strings.Contains(c.Text, "://") && utf8.RuneCountInString(lines[n]) > maxCommentWidth {
					problems = append(problems, fmt.Sprintf("%s:%d: comment is wider than %d columns", f.path, n+1, maxCommentWidth))
				}
			}
		}
	}
	return problems
}
