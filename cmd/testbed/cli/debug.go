package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// debugger is Delve, below the root of the repository. `make debug` builds it.
const debugger = "bin/dlv"

func newDebugCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var (
		port   uint16
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "debug TARGET",
		Short: "Attach Delve to the extension or a cache, and serve its client until Ctrl-C",
		Long: "Let Delve attach to a process of ours, on the node on which it runs: extension, cache/alpha. It prints the address to which\n" +
			"`dlv connect` or an editor connects. The process goes on until a client stops it, and after Ctrl-C. `make dev\n" +
			"ARGS=--profile=debug` installs what a debugger can read, `make debug` builds Delve first (docs/inner-loop.md).",
		Example: "  testbed debug extension\n  testbed debug cache/alpha --port 4001",
		Args:    program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := spec.ParseTarget(args[0])
			if err != nil {
				return err
			}
			testbed, err := attach(cmd, *options)
			if err != nil {
				return err
			}
			found, err := develop.FindTarget(cmd.Context(), testbed, target, int(port))
			if err != nil {
				return err
			}
			var failed error
			err = develop.Debug(cmd.Context(), testbed, found, debugger, std.Err, func() {
				if asJSON {
					failed = writeJSON(std.Out, found)
				} else {
					_, failed = fmt.Fprintln(std.Out, found.Address)
				}
			})
			if errors.Is(err, fs.ErrNotExist) {
				return program.Environment(fmt.Errorf("%s is not there; run: make %s", debugger, debugger))
			}
			return errors.Join(err, failed)
		},
	}
	addOutput(cmd, &asJSON, "print JSON: node, pod, process and address")
	cmd.Flags().Uint16Var(&port, "port", develop.DefaultDebugPort, "where Delve listens on the node")
	return completed(cmd, options, only(nameDebuggees))
}
