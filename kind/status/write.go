package status

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// Write prints the status as tables.
func (s *Testbed) Write(w io.Writer) error {
	if !s.Exists() {
		start := "make up" // works without bin/testbed
		if s.Prefix != upstream.DefaultPrefix {
			start = "bin/testbed up --prefix " + s.Prefix
		}
		_, err := fmt.Fprintf(w, "testbed %s: not found; start it with: %s\n", s.Prefix, start)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	writeReport := func(w io.Writer) { write(w, s.Report) }
	for _, section := range []func(io.Writer){s.writeClusters, s.writeGarden, writeReport, s.writeUpstreams, s.writeVersions} {
		section(table)
		if err := table.Flush(); err != nil { // each section has column widths of its own
			return err
		}
	}
	return nil
}

func (s *Testbed) writeClusters(w io.Writer) {
	for _, cluster := range s.Clusters {
		fmt.Fprintf(w, "%s %s\t%s\n", strings.ToUpper(cluster.Role), cluster.Name, cmp.Or(cluster.Problem, cluster.Kubeconfig))
		for _, node := range cluster.Nodes {
			fmt.Fprintf(w, "  %s %s\t%s\n", Mark(node.Ready), node.Name, node.Problem)
			write(w, node.Report)
		}
	}
}

func (s *Testbed) writeUpstreams(w io.Writer) {
	fmt.Fprintf(w, "UPSTREAMS\n")
	for _, upstream := range s.Upstreams {
		var requests []string
		for _, asker := range slices.Sorted(maps.Keys(upstream.Requests)) {
			requests = append(requests, fmt.Sprintf("%d requests by %s", upstream.Requests[asker], asker))
		}
		fmt.Fprintf(w, "  %s %s\t%s\t%s\n", Mark(upstream.Running), upstream.Host, upstream.State,
			cmp.Or(upstream.Problem, strings.Join(requests, ", ")))
	}
}

func (s *Testbed) writeVersions(w io.Writer) {
	fmt.Fprintf(w, "VERSIONS\n")
	for _, name := range slices.Sorted(maps.Keys(s.Versions)) {
		fmt.Fprintf(w, "  %s\t%s\n", name, s.Versions[name])
	}
}

// Mark returns the symbol at the start of a row.
func Mark(good bool) string {
	if good {
		return "✓"
	}
	return "✗"
}
