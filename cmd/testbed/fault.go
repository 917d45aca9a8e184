package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

func newFaultCommand(options *kind.Options) *cobra.Command {
	return group(&cobra.Command{
		Use:   "fault",
		Short: "Inject faults into parts of the testbed, and remove them",
	}, newFaultAddCommand(options), newFaultListCommand(options), newFaultDeleteCommand(options))
}

func newFaultAddCommand(options *kind.Options) *cobra.Command {
	var (
		flags  = map[string]*[]string{}
		wanted spec.Fault
	)
	cmd := withJSON(&cobra.Command{
		Use:   "add TARGET KIND",
		Short: "Inject a fault, for a time or until it is deleted",
		Long:  "Inject a fault, for a time (--for) or until it is deleted.\n\n" + spec.Catalog(),
		Example: "  testbed fault add upstream/alpha status --status 429 --header Retry-After=30 --for 2m\n  testbed fault add cache/alpha blackhole\n" +
			"  testbed fault add node/worker2 loss",
		Args: program.Args(cobra.ExactArgs(2)),
		PreRunE: func(cmd *cobra.Command, args []string) (err error) {
			given := map[string][]string{} // including options with an empty value
			for name, values := range flags {
				if cmd.Flags().Changed(name) {
					given[name] = *values
				}
			}
			wanted, err = spec.New(args[0], args[1], given)
			return err
		},
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			added, err := fault.Add(cmd.Context(), testbed, wanted)
			if err != nil {
				return err
			}
			return answer(cmd, added, line(added.String()))
		}),
	})
	for _, option := range spec.Options() {
		flags[option.Name] = cmd.Flags().StringArray(option.Name, nil, option.Usage)
	}
	return cmd
}

func newFaultListCommand(options *kind.Options) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the active faults",
		Args:  program.Args(cobra.NoArgs),
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			active, err := fault.List(cmd.Context(), testbed)
			all := append([]spec.Fault{}, active...) // prints [] instead of null
			return errors.Join(err, answer(cmd, all, func(out io.Writer) error { return spec.Write(out, active) }))
		}),
	})
}

func newFaultDeleteCommand(options *kind.Options) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:     "delete [ID...]",
		Aliases: []string{"clear"},
		Short:   "Remove the faults with these IDs, or all faults",
		Args:    program.Args(cobra.ArbitraryArgs),
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			deleted, err := fault.Delete(cmd.Context(), testbed, args...)
			if err != nil && len(deleted) == 0 {
				return err
			}
			all := append([]spec.Fault{}, deleted...) // prints [] instead of null
			return errors.Join(err, answer(cmd, all, func(io.Writer) error {
				for _, f := range deleted {
					fmt.Fprintf(cmd.ErrOrStderr(), "deleted %s: %s %s\n", f.ID, f.Target, f.Effect())
				}
				return nil
			}))
		}),
	})
}
