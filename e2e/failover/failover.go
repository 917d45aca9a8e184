// Package failover records how long pulls take while a cache fails, and renders docs/failover.md.
package failover

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// Result is one failure as a version of containerd sees it. Times are in seconds.
type Result struct {
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

// Merge returns the results with later ones added, which replace the times that they have.
func Merge(all []Result, later ...Result) []Result {
	all = slices.Clone(all)
	for _, one := range later {
		at := slices.IndexFunc(all, func(r Result) bool { return r.Failure == one.Failure && r.Containerd == one.Containerd })
		if at < 0 {
			all = append(all, one)
			continue
		}
		if one.Took > 0 {
			all[at].Direct, all[at].Took = one.Direct, one.Took
		}
		if one.Old > 0 {
			all[at].Old = one.Old
		}
		if one.Midway > 0 {
			all[at].MidwayDirect, all[at].Midway = one.MidwayDirect, one.Midway
		}
	}
	return all
}

// Read returns the results in a file, or none if it does not exist.
func Read(path string) (all []Result, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the results of failover: %w", err)
	}
	return all, nil
}

// Record merges results into a file.
func Record(path string, later ...Result) error {
	all, err := Read(path)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(Merge(all, later...), "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err == nil {
		err = os.WriteFile(path, append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record a result of failover: %w", err)
	}
	return nil
}
