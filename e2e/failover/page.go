// Package failover records how long pulls take while a cache fails, and renders docs/failover.md.
package failover

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

//go:embed introduction.txt
var introduction string

// Page renders docs/failover.md.
func Page(all []Result) string {
	var page strings.Builder
	page.WriteString(introduction)
	page.WriteString("\n## Ten seconds after the failure began\n\n")
	page.WriteString(table(all, "old configuration", func(r Result) (pull, direct float64) { return r.Took, r.Direct }))
	page.WriteString("\n## The failure begins in the middle of a pull\n\n")
	page.WriteString(table(all, "", func(r Result) (pull, direct float64) { return r.Midway, r.MidwayDirect }))
	return page.String()
}

// table has a row for each failure and two columns for each version. The last column, that of the
// old configuration, is left out if it has no title.
func table(all []Result, oldTitle string, times func(Result) (pull, direct float64)) string {
	var header, rows strings.Builder
	header.WriteString("| failure |")
	versions := versionsOf(all)
	for _, version := range versions {
		fmt.Fprintf(&header, " containerd %s | direct |", version)
	}
	if oldTitle != "" {
		fmt.Fprintf(&header, " %s |", oldTitle)
	}
	for _, name := range failuresOf(all) {
		fmt.Fprintf(&rows, "| %s |", name)
		for _, version := range versions {
			pull, direct := times(find(all, name, version))
			fmt.Fprintf(&rows, " %s | %s |", seconds(pull), seconds(direct))
		}
		if oldTitle != "" {
			fmt.Fprintf(&rows, " %s |", seconds(oldOf(all, name)))
		}
		rows.WriteString("\n")
	}
	columns := strings.Count(header.String(), "|") - 1
	return header.String() + "\n|" + strings.Repeat(" --- |", columns) + "\n" + rows.String()
}

func seconds(s float64) string {
	switch {
	case s == 0:
		return "not measured"
	case s >= OldLimit.Seconds():
		return fmt.Sprintf("more than %.0f s", OldLimit.Seconds())
	}
	return fmt.Sprintf("%.2f s", s)
}

// versionsOf returns the versions of containerd, the newest first.
func versionsOf(all []Result) (versions []string) {
	for _, r := range all {
		if !slices.Contains(versions, r.Containerd) {
			versions = append(versions, r.Containerd)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return semver.Compare(b, a) })
	return versions
}

func failuresOf(all []Result) (names []string) {
	for _, r := range all {
		if !slices.Contains(names, r.Failure) {
			names = append(names, r.Failure)
		}
	}
	return names
}

// oldOf returns how long a pull takes with the old configuration, for any version of containerd.
func oldOf(all []Result, name string) float64 {
	for _, r := range all {
		if r.Failure == name && r.Old > 0 {
			return r.Old
		}
	}
	return 0
}

func find(all []Result, name, version string) Result {
	for _, r := range all {
		if r.Failure == name && r.Containerd == version {
			return r
		}
	}
	return Result{}
}
