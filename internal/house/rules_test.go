package house

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

const (
	module = "github.com/gardener-extensions/registry-cache"
	// maxLines limits the length of a hand-written file.
	maxLines  = 400
	generated = "// Code generated"
)

// rules apply to the whole repository. A check returns a message for each violation.
var rules = []struct {
	name  string
	check func(tree) []string
}{
	{"layers", missingLayers},
	{"package comments", packageComments},
	{"comment widths", wideComments},
	{"prose widths", wideProse},
	{"file sizes", fileSizes},
	{"no next job", noNextJob},
	{"no leftovers", noLeftovers},
	{"links", deadLinks},
	{"make targets", unknownTargets},
	{"layer table", layerTable},
	{"package maps", unnamedPackages},
	{"metrics", undocumentedMetrics},
	{"index", unlistedDocuments},
	{"differences", unprovenRows},
}

// packageComments finds packages without a comment, or with several comments, which go/doc would
// join.
func packageComments(t tree) []string {
	var problems []string
	for dir, files := range t.packages() {
		var commented []string
		for _, f := range files {
			if f.ast.Doc.Text() != "" {
				commented = append(commented, path.Base(f.path))
			}
		}
		if len(commented) != 1 {
			problems = append(problems, fmt.Sprintf("%s has package comments in %d files %q, want one", dir, len(commented), commented))
		}
	}
	return problems
}

func fileSizes(t tree) []string {
	var problems []string
	for _, f := range t {
		if ext := path.Ext(f.path); ext != ".go" && ext != ".sh" || strings.HasPrefix(f.text, generated) {
			continue
		}
		lines := strings.Count(f.text, "\n")
		if lines > maxLines {
			problems = append(problems, fmt.Sprintf("%s has %d lines, the limit is %d: split it", f.path, lines, maxLines))
		}
	}
	return problems
}

// nextJob matches the command `wait -n` of a shell, which waits for the next job to end. bash 5.2
// forgets a job that ended before another one started, and then waits forever. If a word follows
// -n, the command is a different one, such as `kubectl wait -n <namespace>`.
var nextJob = regexp.MustCompile(
	`(^|[;&|({!@"']|\\n|\b(if|elif|while|until|then|do|else)\s)\s*wait(\s+-[fp](\s+\w+)?)*\s+-[a-z]*n\s*([^\sa-z=-]|-p|$)`)

// comment matches a comment line, to which rules for commands do not apply.
var comment = regexp.MustCompile(`^\s*(#|//)`)

func noNextJob(t tree) []string {
	var problems []string
	for _, f := range t {
		if path.Ext(f.path) == ".md" {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if nextJob.MatchString(line) && !comment.MatchString(line) {
				problems = append(problems, fmt.Sprintf("%s:%d: wait for a process by its ID", f.path, i+1))
			}
		}
	}
	return problems
}

// leftovers matches marks of unfinished work, and paths of a development machine.
var leftovers = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|(^|[\s"'=:(` + "`" + `])/(wor` + `k|tmp/` + `w|roo` + `t/go)(/|\b)`)

func noLeftovers(t tree) []string {
	var problems []string
	for _, f := range t {
		for i, line := range strings.Split(f.text, "\n") {
			if found := leftovers.FindString(line); found != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %q must not be committed", f.path, i+1, strings.TrimSpace(found)))
			}
		}
	}
	return problems
}
