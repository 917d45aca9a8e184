package finding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
)

// Finding is a problem, or a hint that there may be one.
type Finding struct {
	// Certain is true for a definite problem. It is false for a hint, and for what may be the effect
	// of another problem, for example a failed pull.
	Certain bool `json:"certain"`
	// Problem is one sentence. Details are the facts behind it.
	Problem string   `json:"problem"`
	Details []string `json:"details,omitempty"`
	// Fix is what the user can do; "" if this depends on the cause.
	Fix string `json:"fix,omitempty"`
	// File is the file of the bundle that shows the problem.
	File string `json:"file,omitempty"`
}

func problem(file, fix, format string, args ...any) Finding {
	return Finding{Certain: true, File: file, Fix: fix, Problem: fmt.Sprintf(format, args...)}
}

func hint(file, format string, args ...any) Finding {
	return Finding{File: file, Problem: fmt.Sprintf(format, args...)}
}

func (f Finding) with(details ...string) Finding {
	f.Details = append(f.Details, details...)
	return f
}

const maxDetails = 5

// Check looks for problems in one part of a bundle.
type Check struct {
	// Name describes the part.
	Name string
	Run  func(*bundle.Bundle) []Finding
}

// Checks returns all checks. Checks for causes come before checks for their effects.
func Checks() []Check {
	return []Check{
		{"injected faults", faults},
		{"API servers that did not answer", unknown},
		{"Extension, OperatingSystemConfigs and ManagedResources", controlPlane},
		{"OperatingSystemConfigs that bypassed the extension's webhook", awake(webhook)},
		{"pods of the extension and of Gardener in the seed", seedPods},
		{"DNS of the shoot", awake(dns)},
		{"caches: pods, Services, endpoints, volumes", awake(caches)},
		{"nodes and the systemd units that pulls need", nodes},
		{"the folders in which containerd looks for hosts.toml files", awake(folders)},
		{"hosts.toml files against the Extension, the Services and the unit that writes them", awake(mirrors)},
		{"answers of caches and upstreams to the nodes", probes},
		{"full disks", disks},
		{"routes to the pods of other nodes", awake(routes)},
		{"firewall tables on only one worker", firewalls},
		{"stopped processes", stopped},
		{"upstreams: containers, errors, slow answers", upstreams},
		{"errors in the logs of caches", cacheLogs},
		{"pulls that failed, hung, or bypassed their cache", pulls},
	}
}

// awake returns a check that finds nothing if the Shoot is hibernated.
func awake(run func(*bundle.Bundle) []Finding) func(*bundle.Bundle) []Finding {
	return func(b *bundle.Bundle) []Finding {
		if b.Hibernated() {
			return nil
		}
		return run(b)
	}
}

// Find runs all checks. Certain findings come first.
func Find(b *bundle.Bundle) []Finding {
	var certain, hints []Finding
	for _, check := range Checks() {
		for _, f := range check.Run(b) {
			if more := len(f.Details) - maxDetails; more > 0 {
				f.Details = append(slices.Clone(f.Details[:maxDetails]), fmt.Sprintf("and %d more", more))
			}
			if f.Certain {
				certain = append(certain, f)
			} else {
				hints = append(hints, f)
			}
		}
	}
	return append(certain, hints...)
}

// recent reports whether a time is in the period that the bundle covers.
func recent(b *bundle.Bundle, at time.Time) bool { return !at.Before(b.Since) }

func clock(at time.Time) string { return at.UTC().Format(time.TimeOnly) }

// count counts texts by timeline.Shape and keeps the newest text of each shape.
type count map[string]*counted

type counted struct {
	text string
	n    int
	last time.Time
}

func (c count) add(text string, at time.Time) {
	shape := timeline.Shape(text)
	if c[shape] == nil {
		c[shape] = &counted{}
	}
	c[shape].n++
	if !at.Before(c[shape].last) {
		c[shape].last, c[shape].text = at, text
	}
}

// finding returns a hint with the texts as details, or nothing if there are no texts. The newest
// text comes first, since old events rarely explain the current state.
func (c count) finding(file, format string, args ...any) []Finding {
	if len(c) == 0 {
		return nil
	}
	newest := func(a, b *counted) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.text, b.text)) }
	found := hint(file, format, args...)
	for _, one := range slices.SortedFunc(maps.Values(c), newest) {
		line := fmt.Sprintf("at %s: %s", clock(one.last), one.text)
		if one.n > 1 {
			line = fmt.Sprintf("%d times, last %s", one.n, line)
		}
		found = found.with(line)
	}
	return []Finding{found}
}
