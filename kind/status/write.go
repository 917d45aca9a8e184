package status

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// Write prints the status as tables.
func (s *Shoot) Write(w io.Writer) error {
	return writeTables(w, s.writeShoot, s.writeExtensions, s.writeConfigs, s.writeNodes, s.writeProblems)
}

// writeTables writes sections that have separate column widths.
func writeTables(w io.Writer, sections ...func(io.Writer)) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, section := range sections {
		section(table)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shoot) writeShoot(w io.Writer) {
	fmt.Fprintf(w, "SHOOT %s\t%s\t%s\n", s.Name, s.state(), s.Namespace)
	if s.LastOperation != nil {
		fmt.Fprintf(w, "  last operation\t%s\n", operationLine(s.LastOperation))
	}
	if s.Rotation != "" {
		fmt.Fprintf(w, "  CA rotation\t%s\n", s.Rotation)
	}
	if s.Purpose != "" {
		fmt.Fprintf(w, "  purpose\t%s\n", s.Purpose)
	}
}

// state returns the stage, and whether a present Shoot is hibernated.
func (s *Shoot) state() string {
	switch {
	case s.Stage == "":
		return "not known"
	case s.Stage != gardenlet.StagePresent:
		return string(s.Stage)
	case s.Hibernation && s.Hibernated:
		return "hibernated"
	case s.Hibernation:
		return "to be hibernated"
	case s.Hibernated:
		return "to be woken up"
	}
	return "awake"
}

func onOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *Shoot) writeExtensions(w io.Writer) {
	fmt.Fprintf(w, "EXTENSIONS%s\n", orText(len(s.Extensions) == 0, "  none"))
	for _, extension := range s.Extensions {
		fmt.Fprintf(w, "  %s\t%s\n", extension.Type+orText(extension.Deleting, " (being deleted)"), operationLine(extension.LastOperation))
		writeError(w, extension.LastError)
		for _, condition := range extension.Conditions {
			fmt.Fprintf(w, "    %s\t%s  %s\n", condition.Type, condition.Status,
				onOneLine(condition.Reason+" "+condition.Message))
		}
		switch size := len(extension.ProviderStatus); {
		case size == 0:
			fmt.Fprintf(w, "    no provider status\n")
		case extension.Report == nil:
			fmt.Fprintf(w, "    provider status\t%d bytes of another kind\n", size)
		}
		write(w, extension.Report, true)
	}
}

func (s *Shoot) writeConfigs(w io.Writer) {
	fmt.Fprintf(w, "OPERATING SYSTEM CONFIGS%s\n", orText(len(s.OperatingSystemConfigs) == 0, "  none"))
	for _, config := range s.OperatingSystemConfigs {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", config.Name+orText(config.Deleting, " (being deleted)"), config.Purpose, operationLine(config.LastOperation))
		writeError(w, config.LastError)
		write(w, config.Report, true)
	}
}

func (s *Shoot) writeNodes(w io.Writer) {
	fmt.Fprintf(w, "NODES\n")
	for _, node := range s.Nodes {
		fmt.Fprintf(w, "  %s %s\t%s\n", Mark(node.Ready), node.Name, cmp.Or(node.Problem, orText(!node.Registered, "no Node object")))
		for _, unit := range node.Units {
			fmt.Fprintf(w, "      %s\t%s\n", strings.TrimSuffix(unit.Name, ".service"), unit.line())
		}
		write(w, node.Report, true)
	}
}

// line describes the unit like `systemctl status`, for example active (running).
func (u Unit) line() string {
	if u.Load != "loaded" {
		return u.Load
	}
	return fmt.Sprintf("%s (%s)", u.Active, u.Sub) +
		orText(u.Result != "" && u.Result != "success", ", result "+u.Result) +
		orText(u.Restarts != "" && u.Restarts != "0", ", restarts "+u.Restarts)
}

func (s *Shoot) writeProblems(w io.Writer) {
	for _, problem := range s.Problems {
		fmt.Fprintf(w, "NOT READ: %s\n", problem)
	}
}

func writeError(w io.Writer, last *gardencorev1beta1.LastError) {
	if last != nil {
		codes := strings.Trim(fmt.Sprint(last.Codes), "[]")
		fmt.Fprintf(w, "    last error\t%s\n", onOneLine(codes+" "+last.Description))
	}
}

// operationLine describes the operation. If it did not succeed, the text has its description.
func operationLine(last *gardencorev1beta1.LastOperation) string {
	if last == nil {
		return "not reconciled yet"
	}
	text := fmt.Sprintf("%s %s, %s", last.Type, last.State, last.LastUpdateTime.UTC().Format("2006-01-02 15:04:05Z"))
	if last.State != gardencorev1beta1.LastOperationStateSucceeded && last.Description != "" {
		text += ": " + onOneLine(last.Description)
	}
	return text
}

func orText(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// Write prints the status as tables.
func (s *Testbed) Write(w io.Writer) error {
	if !s.Exists() {
		_, err := fmt.Fprintf(w, "testbed %s: not found; start it with: make up\n", s.Prefix)
		return err
	}
	return writeTables(w, s.writeClusters, func(w io.Writer) { write(w, s.Report, false) }, s.writeUpstreams, s.writeVersions)
}

func (s *Testbed) writeClusters(w io.Writer) {
	for _, cluster := range s.Clusters {
		fmt.Fprintf(w, "%s %s\t%s\n", strings.ToUpper(cluster.Role), cluster.Name, cmp.Or(cluster.Problem, cluster.Kubeconfig))
		for _, node := range cluster.Nodes {
			fmt.Fprintf(w, "  %s %s\t%s\n", Mark(node.Ready), node.Name, node.Problem)
			write(w, node.Report, false)
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

// Mark returns the symbol that a row begins with.
func Mark(good bool) string {
	if good {
		return "✓"
	}
	return "✗"
}
