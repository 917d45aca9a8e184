package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/proof"
)

func newMutateCommand(options *kind.Options, std program.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mutate",
		Short: "Plant a bug in the extension, or prove that the scenarios notice each bug",
		Long: "Plant a bug in what ships: one line of its sources is replaced while it is built, the sources stay as they are. `prove` does\n" +
			"so with one bug after another, and runs the scenarios that must turn red.",
		Args: cobra.ArbitraryArgs,
		RunE: program.Verbs,
	}
	cmd.AddCommand(newMutateListCommand(std), newMutatePlantCommand(options, std), newMutateClearCommand(options, std),
		newMutateProveCommand(options, std))
	return cmd
}

func newMutateListCommand(std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the bugs that can be planted",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(std.Out, proof.All())
			}
			return proof.WriteList(std.Out, proof.All())
		},
	}
	addOutput(cmd, &asJSON, "print JSON, with the line and what it is replaced by")
	return cmd
}

func newMutatePlantCommand(options *kind.Options, std program.Streams) *cobra.Command {
	return withDryRun(&cobra.Command{
		Use:       "plant NAME",
		Short:     "Update a running testbed to a build with this bug",
		Args:      program.Args(cobra.ExactArgs(1)),
		ValidArgs: mutantNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return mutate(cmd, *options, args[0])
		},
	}, std, planMutant)
}

func newMutateClearCommand(options *kind.Options, std program.Streams) *cobra.Command {
	return withDryRun(&cobra.Command{
		Use:   "clear",
		Short: "Update a running testbed to a build without a planted bug",
		Args:  program.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return mutate(cmd, *options, "") },
	}, std, planMutant)
}

// planMutant is for the bug of that name, and for none.
func planMutant(_ *cobra.Command, args []string) ([]string, error) {
	lines, err := proof.PlanPlant(strings.Join(args, ""))
	if err != nil {
		return nil, program.Usage(err)
	}
	return lines, nil
}

// mutate brings a testbed that is up to its first state, with this bug or with none.
func mutate(cmd *cobra.Command, options kind.Options, name string) error {
	testbed, err := newTestbed(options)
	if err != nil {
		return err
	}
	if err := proof.Plant(testbed, name); err != nil {
		return program.Usage(err)
	}
	if err := testbed.Attach(cmd.Context()); err != nil {
		return err
	}
	return bringup.Up(cmd.Context(), testbed)
}

func newMutateProveCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prove [NAME...]",
		Short: "Run the scenarios that must fail for each bug, and print which caught it",
		Long: "For each bug, or for those named, plant it, run the scenarios that must turn red, and bring the sound build back. The testbed\n" +
			"is brought up if it is not, and kept. Exits with 1 if a bug was not caught.",
		ValidArgs: mutantNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			bugs, err := proof.Select(args...)
			if err != nil {
				return program.Usage(err)
			}
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			report, err := proof.Prove(cmd.Context(), testbed, bugs)
			if report == nil {
				return program.Usage(err)
			}
			if errors.As(err, new(*proof.StartError)) {
				return err
			}
			if err != nil {
				fmt.Fprintln(std.Err, "A planted bug may still be there: `testbed mutate clear` brings the sound build back.")
			}
			fmt.Fprintf(std.Err, "Output and artifacts of each run: %s\n", proof.Folder(testbed))
			show := func() error { return report.Write(std.Out) }
			if asJSON {
				show = func() error { return writeJSON(std.Out, report) }
			}
			return errors.Join(err, show(), report.Err())
		},
	}
	addOutput(cmd, &asJSON, "print JSON, with whole sentences")
	return withDryRun(cmd, std, func(_ *cobra.Command, args []string) ([]string, error) {
		bugs, err := proof.Select(args...)
		if err != nil {
			return nil, program.Usage(err)
		}
		if _, err := newTestbed(*options); err != nil {
			return nil, err
		}
		return proof.Plan(bugs), nil
	})
}

func mutantNames() []string {
	var names []string
	for _, m := range proof.All() {
		names = append(names, m.Name)
	}
	return names
}
