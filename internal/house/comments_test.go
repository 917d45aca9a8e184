package house

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxCommentWidth limits a comment on its own line. A tab counts as one column.
const maxCommentWidth = 100

// stillWide are folders with wide comments. The list must become empty; do not add to it.
var stillWide = []string{
	"api/v1alpha3",
	"charts",
	"cmd/registry-cache",
	"cmd/registry-cache-admission",
	"cmd/registry-cache-extension",
	"cmd/testbed",
	"cmd/testbed/cli",
	"controller",
	"controller/cache",
	"controller/certificate",
	"controller/cleaner",
	"controller/monitoring",
	"controller/reference",
	"controller/shootclient",
	"controller/volume",
	"e2e",
	"e2e/fieldbugs",
	"e2e/matrix",
	"e2e/report",
	"e2e/survival",
	"e2e/timeline",
	"examples",
	"internal/golden",
	"internal/golden/objects",
	"kind",
	"kind/certificate",
	"kind/cluster",
	"kind/command",
	"kind/configuration",
	"kind/debian",
	"kind/diagnostics",
	"kind/diagnostics/bundle",
	"kind/diagnostics/finding",
	"kind/diagnostics/timeline",
	"kind/distribution",
	"kind/doctor",
	"kind/engine",
	"kind/engine/runcshim",
	"kind/fault",
	"kind/fault/delay",
	"kind/fault/delay/testbed-delay",
	"kind/file",
	"kind/gardener",
	"kind/gardenlet",
	"kind/hostsfile",
	"kind/image",
	"kind/image/pause",
	"kind/lock",
	"kind/logline",
	"kind/logs",
	"kind/manifest",
	"kind/mutant",
	"kind/nodeimage",
	"kind/osextension",
	"kind/preflight",
	"kind/progress",
	"kind/pull",
	"kind/readiness",
	"kind/snapshot",
	"kind/trace",
	"kind/upstream",
	"kind/upstream/accesslog",
	"kind/upstream/outbound",
	"kind/upstream/server",
	"kind/upstream/upstream-registry",
	"nodeconfig",
	"nodeconfig/cleaner",
	"webhook/operatingsystemconfig",
	"webhook/shoot",
}

// wideComments finds comments on their own line that are too wide. Directives and URLs cannot wrap.
func wideComments(t tree) []string {
	var problems []string
	for _, f := range t.goFiles() {
		exempt := strings.HasPrefix(f.path, "cmd/registry-cache/registry/") || slices.Contains(stillWide, f.dir())
		if exempt || strings.HasPrefix(f.text, generated) {
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
