package failover

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed introduction.txt
var introduction string

// Page renders docs/failover.md.
func Page(all []Result) string {
	var page strings.Builder
	page.WriteString(introduction)
	versions := versionsOf(all)
	page.WriteString("\n## Ten seconds after the failure began\n\n| failure |")
	for _, version := range versions {
		fmt.Fprintf(&page, " containerd %s | direct |", version)
	}
	page.WriteString(" old configuration |\n| --- |" + strings.Repeat(" --- | --- |", len(versions)) + " --- |\n")
	for _, name := range failuresOf(all) {
		fmt.Fprintf(&page, "| %s |", name)
		for _, version := range versions {
			r := find(all, name, version)
			fmt.Fprintf(&page, " %s | %s |", seconds(r.Took), seconds(r.Direct))
		}
		fmt.Fprintf(&page, " %s |\n", seconds(oldOf(all, name)))
	}
	page.WriteString("\n![Seconds of a pull under each failure](images/failover.svg)\n")
	page.WriteString("\n## The failure begins in the middle of a pull\n\n| failure | containerd | pull | direct |\n| --- | --- | --- | --- |\n")
	for _, r := range all {
		if r.Midway > 0 {
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", r.Failure, r.Containerd, seconds(r.Midway), seconds(r.MidwayDirect))
		}
	}
	return page.String()
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
	slices.SortFunc(versions, func(a, b string) int { return cmp.Compare(b, a) })
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
