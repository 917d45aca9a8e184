package status

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
)

// Write prints the status as tables.
func (s *Testbed) Write(w io.Writer) error {
	if !s.Exists() {
		_, err := fmt.Fprintf(w, "testbed %s: not found; start it with: make up\n", s.Prefix)
		return err
	}
	if s.Owner != "" {
		fmt.Fprintf(w, "It is owned by %s: run commands that use or change it there, or use another testbed with --prefix NAME\n", s.Owner)
	}
	if s.PlantedBug != "" {
		fmt.Fprintf(w, "A BUG IS PLANTED: %s; remove it with: testbed mutate clear\n", s.PlantedBug)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, section := range []func(io.Writer){s.writeClusters, s.writeCaches, s.writeUpstreams, s.writeVersions} {
		section(table)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Testbed) writeClusters(w io.Writer) {
	for _, cluster := range s.Clusters {
		fmt.Fprintf(w, "%s %s\t%s\n", strings.ToUpper(cluster.Role), cluster.Name, orProblem(cluster.Kubeconfig, cluster.Problem))
		for _, node := range cluster.Nodes {
			fmt.Fprintf(w, "  %s %s\t%s\n", mark(node.Ready), node.Name, node.Problem)
			for _, mirror := range node.Mirrors {
				fmt.Fprintf(w, "      %s\t%s\n", mirror.Upstream, route(mirror))
			}
		}
	}
}

// route returns the hosts that a pull asks, for example "http://10.96.0.7:5000, then
// https://alpha.upstream.test".
func route(m hostsfile.Mirror) string {
	if m.Problem != "" {
		return m.Problem
	}
	route := strings.Join(append(slices.Clone(m.Hosts), m.Server), ", then ")
	if !m.Managed {
		route += "  (unmanaged)"
	}
	return route
}

func (s *Testbed) writeCaches(w io.Writer) {
	fmt.Fprintln(w, strings.TrimSpace("CACHES  "+s.CachesProblem))
	for _, cache := range s.Caches {
		fmt.Fprintf(w, "  %s %s\t%s\n", mark(cache.Ready), cache.Upstream, cache.Endpoint)
	}
}

func (s *Testbed) writeUpstreams(w io.Writer) {
	fmt.Fprintf(w, "UPSTREAMS\n")
	for _, upstream := range s.Upstreams {
		var requests []string
		for _, asker := range slices.Sorted(maps.Keys(upstream.Requests)) {
			requests = append(requests, fmt.Sprintf("%d requests by %s", upstream.Requests[asker], asker))
		}
		fmt.Fprintf(w, "  %s %s\t%s\t%s\n", mark(upstream.Running), upstream.Host, upstream.State,
			orProblem(strings.Join(requests, ", "), upstream.Problem))
	}
}

func (s *Testbed) writeVersions(w io.Writer) {
	fmt.Fprintf(w, "VERSIONS\n")
	for _, name := range slices.Sorted(maps.Keys(s.Versions)) {
		fmt.Fprintf(w, "  %s\t%s\n", name, s.Versions[name])
	}
}

func mark(good bool) string {
	if good {
		return "✓"
	}
	return "✗"
}

func orProblem(text, problem string) string {
	if problem != "" {
		return problem
	}
	return text
}
