package finding

import (
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// Finding is something that is wrong, or stands out.
type Finding struct {
	// Certain: it is wrong whatever else is. Otherwise it is a consequence or a hint, for example a pull that failed.
	Certain bool `json:"certain"`
	// Problem is one sentence, Details are the facts that it rests on.
	Problem string   `json:"problem"`
	Details []string `json:"details,omitempty"`
	// Fix is what a person can do about it; "" where that depends on the cause.
	Fix string `json:"fix,omitempty"`
	// File of the bundle shows it.
	File string `json:"file,omitempty"`
}

// maxDetails bounds the facts of one finding.
const maxDetails = 5

// Checks are all checks, in the order in which causes come before their effects.
func Checks() []Check {
	return []Check{
		{"faults that were put in on purpose", faults},
		{"API servers that did not answer", unknown},
		{"Extension, OperatingSystemConfigs and ManagedResources", controlPlane},
		{"OperatingSystemConfigs that the extension's webhook did not see", webhook},
		{"pods of extension and Gardener in the seed", seedPods},
		{"DNS of the shoot", dns},
		{"caches: pods, Services, endpoints, volumes", caches},
		{"nodes, and the units between API server and a pull", nodes},
		{"the folders in which containerd looks for hosts.toml files", folders},
		{"hosts.toml files against the Extension, the Services and the unit that writes them", mirrors},
		{"answers of caches and upstreams to the nodes", probes},
		{"full disks", disks},
		{"routes to the pods of other nodes", routes},
		{"firewall tables that one worker alone has", firewalls},
		{"processes that are stopped", stopped},
		{"upstreams: containers, errors, slow answers", upstreams},
		{"errors in the logs of caches", cacheLogs},
		{"pulls that failed, hung, or went past their cache", pulls},
	}
}

// Check looks at one part of a bundle.
type Check struct {
	// Name says what is looked at.
	Name string
	Run  func(*bundle.Bundle) []Finding
}

// Find runs all checks. What is certain comes first.
func Find(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, check := range Checks() {
		all = append(all, check.Run(b)...)
	}
	for i, f := range all {
		if len(f.Details) > maxDetails {
			all[i].Details = append(slices.Clone(f.Details[:maxDetails]), "and more of that kind")
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		switch {
		case a.Certain == b.Certain:
			return 0
		case a.Certain:
			return -1
		default:
			return 1
		}
	})
	return all
}

// recent says whether that belongs to what the bundle is about.
func recent(b *bundle.Bundle, at time.Time) bool { return !at.Before(b.Since) }
