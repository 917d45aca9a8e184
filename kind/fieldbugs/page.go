package fieldbugs

import (
	"fmt"
	"slices"
	"strings"
)

const pageHead = `# Field bugs

Generated from kind/fieldbugs by ` + "`make field-bugs`" + `: do not edit.

What breaks image-pull caches in the field, as something that can be reproduced here. ` + "`make e2e-all`" + ` runs all of them,
` + "`make e2e RUN='^s22$' KEEP=1`" + ` one, and on a testbed that is up ` + "`bin/testbed reproduce s22`" + ` does. The commands below are those
that the last run was made of, as lines for bash: ` + "`testbed`" + ` is ` + "`bin/testbed`" + `, typed in the root of the repository, and what
only one run has, names of images, volumes and nodes, are variables. Begin without a fault (` + "`testbed fault clear`" + `), and end so.
After ` + "`# until`" + ` the program looks again and again, until it is so; by hand, repeat the commands below it.
A few lines read an image's digests by ` + "`jq`" + `.

- **held**: a user sees what must be seen. **known**: not yet; it runs all the same, and the run fails on the day it holds.
  **broken**: a claim did not hold, or the bug could not be reproduced. **mended**: a known one holds, its mark has to go. Both fail the run.
- Figures are of the day named, on two cores with everything on one machine: their bounds are what is promised.

`

// Page renders docs/field-bugs.md from the catalog and the last results.
func Page(bugs []Bug, results []Result) string {
	var page strings.Builder
	page.WriteString(pageHead)
	page.WriteString("| | | verdict | measured |\n|---|---|---|---|\n")
	for _, bug := range bugs {
		result := resultOf(results, bug)
		fmt.Fprintf(&page, "| [%s](#%s) | %s | %s | %s |\n", bug.ID, bug.ID, bug.Title, verdictOf(result), cell(figures(result)))
	}
	for _, bug := range bugs {
		page.WriteString("\n" + section(bug, resultOf(results, bug)))
	}
	return page.String()
}

func resultOf(results []Result, bug Bug) *Result {
	if i := slices.IndexFunc(results, func(r Result) bool { return r.ID == bug.ID }); i >= 0 {
		return &results[i]
	}
	return nil
}

func verdictOf(result *Result) string {
	if result == nil {
		return "not run yet"
	}
	return string(result.Verdict)
}

func figures(result *Result) string {
	if result == nil {
		return ""
	}
	var all []string
	for _, f := range result.Figures {
		all = append(all, fmt.Sprintf("%s: %.1f s of %.0f s", f.Name, f.Seconds, f.Bound))
	}
	return strings.Join(all, "; ")
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// faultOf is what to add by `testbed fault add`, or prose where no fault is needed.
func faultOf(bug Bug) string {
	if strings.HasPrefix(bug.Fault, "none: ") {
		return bug.Fault
	}
	return "`" + strings.ReplaceAll(bug.Fault, "; ", "`; `") + "`"
}

func section(bug Bug, result *Result) string {
	var text strings.Builder
	fmt.Fprintf(&text, "## %s\n\n**%s%s** (%s)\n\n", bug.ID, strings.ToUpper(bug.Title[:1]), bug.Title[1:], strings.Join(bug.Reports, ", "))
	fmt.Fprintf(&text, "- Symptom: %s\n- Fault: %s\n- What a user must see: %s\n", bug.Symptom, faultOf(bug), bug.Expectation)
	if bug.Known != nil {
		fmt.Fprintf(&text, "- Known failure: %q does not hold: %s\n", bug.Known.Claim, bug.Known.Because)
	}
	if result == nil {
		text.WriteString("- Not run yet.\n")
		return text.String()
	}
	fmt.Fprintf(&text, "- %s, %s, in %.0f s", result.Day, result.Verdict, result.Seconds)
	if result.Reason != "" {
		fmt.Fprintf(&text, ": %s", result.Reason)
	}
	text.WriteString("\n")
	for _, evidence := range result.Evidence {
		fmt.Fprintf(&text, "  - %s\n", evidence)
	}
	fmt.Fprintf(&text, "\n```console\n%s\n```\n", strings.Join(result.Commands, "\n"))
	return text.String()
}
