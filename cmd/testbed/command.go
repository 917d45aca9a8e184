package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

// group adds the commands to cmd. On its own, cmd returns a usage error.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, program.Verbs
	cmd.AddCommand(commands...)
	return cmd
}

// verb runs a command on the testbed that --prefix selects.
type verb func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error

// onTestbed turns the verb do into a RunE. The testbed may be down. Invalid options are usage
// errors.
func onTestbed(options *kind.Options, do verb) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		testbed, err := kind.New(*options)
		if err != nil {
			return program.Usage(err)
		}
		return do(cmd, testbed, args)
	}
}

// onRunning is like onTestbed, but its RunE returns an error if part of the testbed is not running.
func onRunning(options *kind.Options, do verb) func(*cobra.Command, []string) error {
	return onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
		if err := testbed.AttachRunning(cmd.Context()); err != nil {
			return err
		}
		return do(cmd, testbed, args)
	})
}

// withJSON adds the flag --json to cmd, with which answer() prints JSON.
func withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// answer prints value as indented JSON if --json is set. If not, it calls the function text.
func answer(cmd *cobra.Command, value any, text func(io.Writer) error) error {
	if asJSON, err := cmd.Flags().GetBool("json"); err != nil || !asJSON { // some commands have no such flag
		return text(cmd.OutOrStdout())
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// line returns a function that prints text as one line.
func line(text string) func(io.Writer) error {
	return func(out io.Writer) error {
		_, err := fmt.Fprintln(out, text)
		return err
	}
}
