package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/plantedbugs"
)

func newMutateCommand(options *kind.Options) *cobra.Command {
	return group(&cobra.Command{
		Use:   "mutate",
		Short: "Plant a bug in the extension, or prove that the scenarios notice each bug",
		Long: `Install a build of the extension with one changed line. The source files do not change.
The subcommand "prove" plants one bug after another, and runs the scenarios that must fail.`,
	},
		withJSON(&cobra.Command{
			Use:   "list",
			Short: "List the bugs that can be planted",
			Args:  program.Args(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return answer(cmd, plantedbugs.All(), func(out io.Writer) error { return plantedbugs.WriteList(out, plantedbugs.All()) })
			},
		}, "print JSON, with the line of each bug and its replacement"),
		withDryRun(&cobra.Command{
			Use:       "plant NAME",
			Short:     "Update a running testbed to a build of the extension with the named bug",
			Args:      program.Args(cobra.ExactArgs(1)),
			ValidArgs: mutantNames(),
			RunE:      onTestbed(options, plant),
		}, options, planPlant),
		withDryRun(&cobra.Command{
			Use:   "clear",
			Short: "Update a running testbed to a build of the extension without a planted bug",
			Args:  program.Args(cobra.NoArgs),
			RunE:  onTestbed(options, plant),
		}, options, planPlant),
		newMutateProveCommand(options),
	)
}

// plant updates a running testbed to a build with the bug in args. Empty args mean no bug.
func plant(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
	if err := plantedbugs.Plant(testbed, strings.Join(args, "")); err != nil {
		return program.Usage(err)
	}
	if err := testbed.Attach(cmd.Context()); err != nil {
		return err
	}
	return bringup.Up(cmd.Context(), testbed)
}

func planPlant(_ *cobra.Command, _ *kind.Testbed, args []string) ([]string, error) {
	lines, err := plantedbugs.PlanPlant(strings.Join(args, ""))
	return lines, program.Usage(err)
}

func newMutateProveCommand(options *kind.Options) *cobra.Command {
	var bugs []plantedbugs.Mutant
	return withDryRun(withJSON(&cobra.Command{
		Use:   "prove [NAME...]",
		Short: "Plant each bug, run the scenarios that must fail, and print which failed",
		Long: `Plant the named bugs, or all, one after another. For each bug, run the scenarios that must fail.
At the end, install the build without bugs. The testbed is created if it does not run, and kept. The
exit code is 1 if a scenario passed, or failed for another reason than the bug.`,
		ValidArgs: mutantNames(),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			bugs, err = plantedbugs.Select(args...)
			return program.Usage(err)
		},
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			report, err := plantedbugs.Prove(cmd.Context(), testbed, bugs)
			if report == nil {
				return program.Usage(err)
			}
			if errors.As(err, new(*plantedbugs.StartError)) {
				return err
			}
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "The testbed may still run a planted bug: `testbed mutate clear` removes it.")
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Output and artifacts of each run: %s\n", plantedbugs.Folder(testbed))
			return errors.Join(err, answer(cmd, report, report.Write), report.Err())
		}),
	}, "print JSON, with the complete reason why each scenario failed"), options, func(*cobra.Command, *kind.Testbed, []string) ([]string, error) {
		return plantedbugs.Plan(bugs), nil
	})
}

func mutantNames() []string {
	var names []string
	for _, m := range plantedbugs.All() {
		names = append(names, m.Name)
	}
	return names
}
