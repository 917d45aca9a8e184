package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/doctor"
)

func newDoctorCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and the testbed, and print what to do about each problem",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			report, err := doctor.Examine(cmd.Context(), testbed)
			if err != nil {
				return err
			}
			if asJSON {
				return errors.Join(writeJSON(std.Out, report), report.Err())
			}
			return errors.Join(report.Write(std.Out), report.Err())
		},
	}
	addOutput(cmd, &asJSON, "print JSON")
	return cmd
}
