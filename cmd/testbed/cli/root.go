package cli

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

// New returns the command testbed, which writes to the streams.
func New(std program.Streams) *cobra.Command {
	options := kind.Options{Out: std.Err}
	root := &cobra.Command{
		Use:   "testbed",
		Short: "Two real kind clusters as Gardener seed and shoot, with upstream registries and the extension",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	root.PersistentFlags().StringVar(&options.Prefix, "prefix", kind.DefaultPrefix,
		"name prefix of the clusters; testbeds with different prefixes live side by side")
	root.AddCommand(newUpCommand(&options, std), newStatusCommand(&options, std), newDownCommand(&options, std))
	root.AddCommand(newPushCommand(&options, std), newPullCommand(&options, std))
	root.AddCommand(newShootCommand(&options, std), newKubeconfigCommand(&options, std), newShellCommand(&options, std))
	root.AddCommand(newExecCommand(&options, std), newKubectlCommand(&options, std))
	root.AddCommand(newMutateCommand(&options, std))
	root.AddCommand(newFaultCommand(&options, std))
	root.AddCommand(newExportCommand(&options, std), newLogsCommand(&options, std), newDoctorCommand(&options, std))
	root.AddCommand(newTraceCommand(&options, std))
	root.AddCommand(newReproduceCommand(&options, std))
	root.AddCommand(newSnapshotCommand(&options, std))
	root.AddCommand(newCompletionCommand(std))
	root.AddCommand(newImageCommand(&options, std), newExtensionCommand(&options, std), newDebugCommand(&options, std))
	return root
}

// newTestbed maps invalid options to wrong use.
func newTestbed(options kind.Options) (*kind.Testbed, error) {
	testbed, err := kind.New(options)
	if err != nil {
		return nil, program.Usage(err)
	}
	return testbed, nil
}
