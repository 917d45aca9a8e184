package cli

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

// New returns the root command. It writes answers to std.Out, and progress and prose to std.Err.
func New(std program.Streams) *cobra.Command {
	options := kind.Options{Out: std.Err}
	root := &cobra.Command{
		Use:   "testbed",
		Short: "Run two kind clusters as Gardener seed and shoot, with upstream registries and the extension",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	root.PersistentFlags().StringVar(&options.Prefix, "prefix", kind.DefaultPrefix,
		"name prefix of the clusters; testbeds with different prefixes live side by side")
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Testbed", []*cobra.Command{
			newUpCommand(&options, std), newStatusCommand(&options, std), newDownCommand(&options, std), newDoctorCommand(&options, std),
			newKubeconfigCommand(&options, std), newKubectlCommand(&options, std), newShellCommand(&options), newExecCommand(&options, std),
			newSnapshotCommand(&options, std),
		}},
		{"Shoot", []*cobra.Command{newShootCommand(&options, std), newPushCommand(&options, std), newPullCommand(&options, std)}},
		{"Break", []*cobra.Command{newFaultCommand(&options, std), newReproduceCommand(&options, std)}},
		{"Look", []*cobra.Command{newLogsCommand(&options, std), newTraceCommand(&options, std), newExportCommand(&options, std)}},
		{"Develop", []*cobra.Command{
			newImageCommand(&options, std), newExtensionCommand(&options, std), newDebugCommand(&options, std), newMutateCommand(&options, std),
			newTestCommand(&options, std),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, command := range group.commands {
			command.GroupID = group.title
			root.AddCommand(command)
		}
	}
	root.AddCommand(newCompletionCommand(std), newVersionCommand(std))
	return root
}

// newTestbed returns a usage error for invalid options.
func newTestbed(options kind.Options) (*kind.Testbed, error) {
	testbed, err := kind.New(options)
	if err != nil {
		return nil, program.Usage(err)
	}
	return testbed, nil
}
