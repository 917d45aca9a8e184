package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/cachetest/fieldbugs"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

func newReproduceCommand(options *kind.Options) *cobra.Command {
	var list bool
	var bugs []fieldbugs.Bug
	cmd := &cobra.Command{
		Use:   "reproduce BUG...",
		Short: "Reproduce field bugs on the testbed, and leave the state for a look around",
		Long: `Run the scenarios of field bugs (docs/field-bugs.md), given by their numbers (s22) or by the names of
the scenarios. --list prints them all. This is the same as testbed test s22, but the last scenario
undoes nothing: its faults and its Shoot stay. testbed fault delete ends the faults, and testbed up
applies the default Shoot. The next run of a scenario undoes both.`,
		Example: "  testbed reproduce --list\n  testbed reproduce s22",
		Args: program.Args(func(cmd *cobra.Command, args []string) error {
			if list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		}),
		PreRunE: func(_ *cobra.Command, args []string) error {
			for _, name := range args {
				found, err := fieldbugs.Find(name)
				if err != nil {
					return program.Usage(err)
				}
				bugs = append(bugs, found...)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return writeBugs(cmd.OutOrStdout())
			}
			return onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
				var names []string
				for _, bug := range bugs {
					if err := writeBug(cmd.ErrOrStderr(), bug); err != nil {
						return err
					}
					names = append(names, bug.Scenarios...)
				}
				return runScenarios(cmd, testbed, names, "LEAVE=1")
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the number, scenarios and title of each bug, and reproduce none")
	return cmd
}

// writeBugs prints a table of all field bugs: number, scenarios and title.
func writeBugs(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSCENARIO\tTITLE")
	for _, bug := range fieldbugs.All() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", bug.ID, strings.Join(bug.Scenarios, ", "), bug.Title)
	}
	return table.Flush()
}

// writeBug prints a description of the bug.
func writeBug(w io.Writer, b fieldbugs.Bug) error {
	_, err := fmt.Fprintf(w, "%s: %s (%s)\n  symptom:  %s\n  planted:  %s\n  expected: %s\n",
		b.ID, b.Title, strings.Join(b.Reports, ", "), b.Symptom, b.Fault, b.Expectation)
	return err
}
