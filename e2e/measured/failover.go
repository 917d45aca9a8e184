package measured

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Failover is how long pulls take while a cache fails, as a version of containerd sees it, in
// seconds.
type Failover struct {
	Failure    string `json:"failure"`
	Containerd string `json:"containerd"`
	// Direct and Took are the times of pulls 10 s after the beginning of the failure.
	Direct float64 `json:"direct,omitempty"`
	Took   float64 `json:"took,omitempty"`
	// Midway is the time of a slow pull during which the failure begins, MidwayDirect that of a direct
	// one.
	MidwayDirect float64 `json:"midwayDirect,omitempty"`
	Midway       float64 `json:"midway,omitempty"`
	// Old is the time of a pull as in Took, with the configuration that Gardener writes. A pull that
	// takes too long has OldLimit.
	Old float64 `json:"old,omitempty"`
}

// OldLimit is the time after which a pull with the old configuration is given up.
const OldLimit = 90 * time.Second

// addTo replaces only the times that the result has.
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

//go:embed failover.txt
var failoverIntroduction string

// FailoverPage renders docs/failover.md.
func FailoverPage(all []Failover) string {
	return failoverIntroduction +
		"\n## Ten seconds after the failure began\n\n" +
		table(all, func(f Failover) (pull, direct float64) { return f.Took, f.Direct }, true) +
		"\n## The failure begins in the middle of a pull\n\n" +
		table(all, func(f Failover) (pull, direct float64) { return f.Midway, f.MidwayDirect }, false)
}

// table has a row for each failure, two columns for each version, the newest first, and at last one
// for the old configuration with any version, if wanted.
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
			rows += fmt.Sprintf(" %s | %s |", seconds(pull, " s"), seconds(direct, " s"))
		}
		if old {
			rows += fmt.Sprintf(" %s |", seconds(first(all, func(f Failover) bool { return f.Failure == failure && f.Old > 0 }).Old, " s"))
		}
		rows += "\n"
	}
	return header + "\n|" + strings.Repeat(" --- |", strings.Count(header, "|")-1) + "\n" + rows
}
