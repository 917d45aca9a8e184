package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

func newFaultCommand(options *kind.Options, std program.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Inject faults into parts of the testbed, and remove them",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	cmd.AddCommand(newFaultAddCommand(options, std), newFaultListCommand(options, std), newFaultDeleteCommand(options, std))
	return cmd
}

func newFaultAddCommand(options *kind.Options, std program.Streams) *cobra.Command {
	flags, asJSON, wait := asked{}, false, false
	cmd := &cobra.Command{
		Use:   "add TARGET KIND",
		Short: "Inject a fault, for a time or until it is deleted",
		Long:  "Inject a fault, for a time (--for) or until it is deleted.\n\n" + spec.Catalog(),
		Example: "  testbed fault add upstream/alpha status --status 429 --header Retry-After=30 --for 2m\n  testbed fault add cache/alpha blackhole\n" +
			"  testbed fault add node/worker2 loss --wait --for 2m",
		Args: program.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := spec.New(args[0], args[1], flags.given(cmd))
			if err != nil {
				return err
			}
			if err := wanted.CheckTime(); err != nil && !wait {
				return err
			}
			tell := func(begun spec.Fault) error {
				if asJSON {
					return writeJSON(std.Out, begun)
				}
				_, err := fmt.Fprintln(std.Out, begun)
				return err
			}
			return withFaults(cmd, *options, func(ctx context.Context, testbed *kind.Testbed) error {
				if wait {
					return fault.Hold(ctx, testbed, wanted, tell)
				}
				begun, err := fault.Add(ctx, testbed, wanted)
				if err != nil {
					return err
				}
				return tell(begun)
			})
		},
	}
	for _, option := range spec.Options() {
		flags[option.Name] = cmd.Flags().StringArray(option.Name, nil, option.Usage)
	}
	addOutput(cmd, &asJSON, "print JSON")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the fault ends or Ctrl-C, then delete it")
	return withDryRun(completed(cmd, options, nameFaults), std, func(cmd *cobra.Command, args []string) ([]string, error) {
		wanted, err := spec.New(args[0], args[1], flags.given(cmd))
		if err == nil && !wait {
			err = wanted.CheckTime()
		}
		if err != nil {
			return nil, err
		}
		return onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) ([]string, error) {
			return fault.PlanAdd(cmd.Context(), testbed, wanted)
		})(cmd, args)
	})
}

// asked are the values of a fault's flags, by their names.
type asked map[string]*[]string

// given returns those that the command line has, also where they are empty.
func (a asked) given(cmd *cobra.Command) map[string][]string {
	all := map[string][]string{}
	for name, values := range a {
		if cmd.Flags().Changed(name) {
			all[name] = *values
		}
	}
	return all
}

func newFaultListCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the active faults",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withFaults(cmd, *options, func(ctx context.Context, testbed *kind.Testbed) error {
				all, err := fault.List(ctx, testbed)
				return errors.Join(err, printFaults(std, asJSON, all))
			})
		},
	}
	addOutput(cmd, &asJSON, "print JSON")
	return cmd
}

func newFaultDeleteCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "delete [ID...]",
		Aliases: []string{"clear"},
		Short:   "Remove the faults with these IDs, or all",
		Args:    program.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFaults(cmd, *options, func(ctx context.Context, testbed *kind.Testbed) error {
				cleared, err := fault.Delete(ctx, testbed, args...)
				if err != nil && len(cleared) == 0 {
					return err
				}
				if asJSON {
					return errors.Join(err, printFaults(std, asJSON, cleared))
				}
				for _, f := range cleared {
					fmt.Fprintf(std.Err, "deleted %s: %s %s\n", f.ID, f.Target, f.Effect())
				}
				return err
			})
		},
	}
	addOutput(cmd, &asJSON, "print JSON")
	return withDryRun(cmd, std, onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) ([]string, error) {
		return fault.PlanDelete(cmd.Context(), testbed, args...)
	}))
}

func printFaults(std program.Streams, asJSON bool, all []spec.Fault) error {
	if !asJSON {
		return spec.Write(std.Out, all)
	}
	if all == nil {
		all = []spec.Fault{} // [], not null
	}
	return writeJSON(std.Out, all)
}

// withFaults runs a verb on the running testbed.
func withFaults(cmd *cobra.Command, options kind.Options, verb func(context.Context, *kind.Testbed) error) error {
	testbed, err := attach(cmd, options)
	if err != nil {
		return err
	}
	return verb(cmd.Context(), testbed)
}
