package report

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// result is one entry of a page. addTo adds it to the entries, where it replaces an earlier result.
type result[R any] interface{ addTo(all []R) []R }

// addTo replaces only the times that the result contains.
func (f Failover) addTo(all []Failover) []Failover {
	at := slices.IndexFunc(all, func(other Failover) bool { return other.Failure == f.Failure && other.Containerd == f.Containerd })
	if at < 0 {
		return append(all, f)
	}
	if f.Took > 0 {
		all[at].Direct, all[at].Took = f.Direct, f.Took
	}
	if f.Old > 0 {
		all[at].Old = f.Old
	}
	if f.Midway > 0 {
		all[at].MidwayDirect, all[at].Midway = f.MidwayDirect, f.Midway
	}
	return all
}

func (r Registry) addTo(all []Registry) []Registry {
	all = append(slices.DeleteFunc(all, func(other Registry) bool { return other.Registry == r.Registry }), r)
	slices.SortFunc(all, func(a, b Registry) int { return strings.Compare(a.Registry, b.Registry) })
	return all
}

//go:embed failover.txt
var failoverIntroduction string

// failoverPage renders docs/failover.md.
func failoverPage(all []Failover) string {
	return failoverIntroduction +
		"\n## Ten seconds after the failure began\n\n" +
		table(all, func(f Failover) (pull, direct float64) { return f.Took, f.Direct }, true) +
		"\n## The failure begins in the middle of a pull\n\n" +
		table(all, func(f Failover) (pull, direct float64) { return f.Midway, f.MidwayDirect }, false)
}

// table returns a table with a row for each failure, and two columns for each version of
// containerd, the newest first. If old is true, the last column is for the old configuration with
// any version.
func table(all []Failover, times func(Failover) (pull, direct float64), old bool) string {
	var failures, versions []string
	for _, f := range all {
		if !slices.Contains(failures, f.Failure) {
			failures = append(failures, f.Failure)
		}
		if !slices.Contains(versions, f.Containerd) {
			versions = append(versions, f.Containerd)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return semver.Compare(b, a) })
	header, rows := "| failure |", ""
	for _, version := range versions {
		header += fmt.Sprintf(" containerd %s | direct |", version)
	}
	if old {
		header += " old configuration |"
	}
	for _, failure := range failures {
		rows += "| " + failure + " |"
		for _, version := range versions {
			pull, direct := times(first(all, func(f Failover) bool { return f.Failure == failure && f.Containerd == version }))
			rows += fmt.Sprintf(" %s | %s |", pullTime(pull, " s"), pullTime(direct, " s"))
		}
		if old {
			rows += fmt.Sprintf(" %s |", pullTime(first(all, func(f Failover) bool { return f.Failure == failure && f.Old > 0 }).Old, " s"))
		}
		rows += "\n"
	}
	return header + "\n|" + strings.Repeat(" --- |", strings.Count(header, "|")-1) + "\n" + rows
}

//go:embed registries.txt
var registriesIntroduction string

// registriesPage renders docs/registries.md, with a row for each known profile.
func registriesPage(all []Registry) string {
	var page strings.Builder
	page.WriteString(registriesIntroduction)
	page.WriteString("| registry | what is special | cold | warm | expired token | outage |\n")
	page.WriteString("| --- | --- | ---: | ---: | ---: | ---: |\n")
	for _, name := range slices.Sorted(maps.Keys(registryprofile.Profiles)) {
		profile, result := registryprofile.Profiles[name], first(all, func(r Registry) bool { return r.Registry == name })
		renewed := pullTime(result.Renewed, "")
		if !UsesTokens(profile) {
			renewed = "no token"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", name, profile.Description,
			pullTime(result.Cold, ""), pullTime(result.Warm, ""), renewed, pullTime(result.Outage, ""))
	}
	return page.String()
}

// first returns the first entry that matches, or an empty one.
func first[R any](all []R, match func(R) bool) (found R) {
	if i := slices.IndexFunc(all, match); i >= 0 {
		found = all[i]
	}
	return found
}

// pullTime returns the text for the time of a pull. 0 means that the pull was not measured, and
// OldLimit or more that it was given up.
func pullTime(s float64, unit string) string {
	switch {
	case s == 0:
		return "not measured"
	case s >= OldLimit.Seconds():
		return fmt.Sprintf("more than %.0f s", OldLimit.Seconds())
	}
	return fmt.Sprintf("%.2f%s", s, unit)
}
