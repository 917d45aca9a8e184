package finding

import (
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// Finding is a problem or a hint to one.
type Finding struct {
	// Certain is true for a problem in any case, and false for a hint or a consequence of another
	// problem, for example a failed pull.
	Certain bool `json:"certain"`
	// Problem is one sentence. Details are its facts.
	Problem string   `json:"problem"`
	Details []string `json:"details,omitempty"`
	// Fix is what a person can do; "" if that depends on the cause.
	Fix string `json:"fix,omitempty"`
	// File is the file of the bundle that shows the problem.
	File string `json:"file,omitempty"`
}

// maxDetails limits the details of one finding.
const maxDetails = 5

// Checks returns all checks. Those for causes come before those for their effects.
func Checks() []Check {
	return []Check{
		{"injected faults", faults},
		{"API servers that did not answer", unknown},
		{"Extension, OperatingSystemConfigs and ManagedResources", controlPlane},
		{"OperatingSystemConfigs that bypassed the extension's webhook", webhook},
		{"pods of the extension and of Gardener in the seed", seedPods},
		{"DNS of the shoot", dns},
		{"caches: pods, Services, endpoints, volumes", caches},
		{"nodes and the systemd units that pulls need", nodes},
		{"the folders in which containerd looks for hosts.toml files", folders},
		{"hosts.toml files against the Extension, the Services and the unit that writes them", mirrors},
		{"answers of caches and upstreams to the nodes", probes},
		{"full disks", disks},
		{"routes to the pods of other nodes", routes},
		{"firewall tables on only one worker", firewalls},
		{"stopped processes", stopped},
		{"upstreams: containers, errors, slow answers", upstreams},
		{"errors in the logs of caches", cacheLogs},
		{"pulls that failed, hung, or bypassed their cache", pulls},
	}
}

// Check looks for problems in one part of a bundle.
type Check struct {
	// Name describes the part.
	Name string
	Run  func(*bundle.Bundle) []Finding
}

// Find runs all checks. Certain findings come first.
func Find(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, check := range Checks() {
		all = append(all, check.Run(b)...)
	}
	for i, f := range all {
		if len(f.Details) > maxDetails {
			all[i].Details = append(slices.Clone(f.Details[:maxDetails]), fmt.Sprintf("and %d more", len(f.Details)-maxDetails))
		}
	}
	certain := slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return !f.Certain })
	hints := slices.DeleteFunc(all, func(f Finding) bool { return f.Certain })
	return append(certain, hints...)
}

// recent reports whether a time is in the period that the bundle is about.
func recent(b *bundle.Bundle, at time.Time) bool { return !at.Before(b.Since) }
