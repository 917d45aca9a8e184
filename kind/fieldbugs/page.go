package fieldbugs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const pageHead = `# Field bugs

Generated from kind/fieldbugs by ` + "`make field-bugs`" + `: do not edit.

Bugs of image pull caches that users reported, and how to reproduce them here. On an existing
testbed, ` + "`bin/testbed reproduce service-recreated`" + ` or ` + "`bin/testbed reproduce s22`" + ` reproduces one.
` + "`make e2e RUN='^s22$' KEEP=1`" + ` also creates the testbed. ` + "`make e2e-all`" + ` reproduces all of them.

| verdict | |
| --- | --- |
| held | the expectation holds |
| known | the expectation does not hold yet, for a known reason; the run passes |
| broken | the expectation does not hold, or the bug could not be reproduced; the run fails |
| fixed | a known failure no longer occurs; the run fails until the mark is removed |

The commands in each section are those of the last run, in bash. To repeat them, work in the root of
the repository, let ` + "`testbed`" + ` be ` + "`bin/testbed`" + `, and start and end with ` + "`testbed fault delete`" + `. Every
bug starts with the following commands. A section that starts with another ` + "`testbed shoot apply`" + `
uses that Shoot instead.

%s

Repeat the commands below an ` + "`# until`" + ` until the condition is true. Image digests are read with jq.

Times are of one run on two cores, with everything on one machine. Only the bounds are promised. The
table has the time that came closest to its bound. ` + "`bin/testbed reproduce`" + ` also prints the evidence
for each other claim.

`

// Page renders docs/field-bugs.md from the bugs and their last results.
func Page(bugs []Bug, results []Result) string {
	var page strings.Builder
	fmt.Fprintf(&page, pageHead, fenced(append([]string{applyTwoCaches}, untilReady...)))
	page.WriteString("| | name | bug | verdict | measured |\n| --- | --- | --- | --- | --- |\n")
	for _, bug := range bugs {
		verdict, measured := "not run yet", ""
		if result := resultOf(results, bug); result != nil {
			verdict, measured = string(result.Verdict), tightest(result.Figures)
		}
		fmt.Fprintf(&page, "| [%s](#%s) | `%s` | %s | %s | %s |\n", bug.ID, bug.ID, bug.Slug, bug.Title, verdict, measured)
	}
	for _, bug := range bugs {
		page.WriteString("\n" + section(bug, resultOf(results, bug)))
	}
	return page.String()
}

// untilReady contains the commands of Rig.begin that follow `shoot apply` in every bug.
var untilReady = []string{
	"# until all workers have the mirrors of all caches:",
	"testbed shoot get",
	"# until the caches run with the current configuration:",
	"testbed kubectl seed get --namespace=shoot--local--local managedresource extension-registry-cache",
	"testbed kubectl shoot get --namespace=kube-system statefulsets --selector=upstream-host",
}

func fenced(commands []string) string {
	return "```console\n" + strings.Join(commands, "\n") + "\n```"
}

// applyTwoCaches is the first command of a bug that starts with the default Shoot.
const applyTwoCaches = "testbed shoot apply -f " + TwoCaches

// shorten removes applyTwoCaches and untilReady, which the page shows only once.
func shorten(commands []string) []string {
	n := len(untilReady) + 1
	switch {
	case len(commands) < n || !slices.Equal(commands[1:n], untilReady):
		return commands
	case commands[0] == applyTwoCaches:
		return commands[n:]
	}
	return slices.Concat(commands[:1], commands[n:])
}

func resultOf(results []Result, bug Bug) *Result {
	if i := slices.IndexFunc(results, func(r Result) bool { return r.ID == bug.ID }); i >= 0 {
		return &results[i]
	}
	return nil
}

// tightest returns the figure that came closest to its bound, or an empty string.
func tightest(figures []Figure) string {
	if len(figures) == 0 {
		return ""
	}
	return slices.MaxFunc(figures, func(a, b Figure) int { return cmp.Compare(a.Seconds/a.Bound, b.Seconds/b.Bound) }).String()
}

// String returns the time and its bound.
func (f Figure) String() string { return fmt.Sprintf("%.1f s of %.0f s", f.Seconds, f.Bound) }

// faultOf returns the arguments of `testbed fault add` as Markdown code, or why there is no fault.
func faultOf(bug Bug) string {
	if strings.HasPrefix(bug.Fault, "none: ") {
		return bug.Fault
	}
	return "`" + strings.ReplaceAll(bug.Fault, "; ", "`; `") + "`"
}

func section(bug Bug, result *Result) string {
	var text strings.Builder
	write := func(format string, args ...any) { text.WriteString(wrap(fmt.Sprintf(format, args...))) }
	fmt.Fprintf(&text, "## %s\n\n", bug.ID)
	write("`%s` (%s)", bug.Slug, strings.Join(bug.Reports, ", "))
	text.WriteString("\n")
	write("- Symptom: %s", bug.Symptom)
	write("- Fault: %s", faultOf(bug))
	write("- Expectation: %s", bug.Expectation)
	if bug.Known != nil {
		write("- Known failure: %q: %s", bug.Known.Claim, bug.Known.Because)
	}
	if result == nil {
		write("- Not run yet.")
		return text.String()
	}
	reason := ""
	if result.Reason != "" && bug.Known == nil {
		reason = ": " + result.Reason
	}
	write("- Result: %s (%s)%s", result.Verdict, result.Day, reason)
	for _, figure := range result.Figures {
		write("  - %s: %s", figure.Name, figure)
	}
	fmt.Fprintf(&text, "\n%s\n", fenced(shorten(result.Commands)))
	return text.String()
}
