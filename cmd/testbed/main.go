// Command testbed creates, shows, breaks and removes the testbed of the registry-cache extension.
// It maps flags to options, results to output and errors to exit codes. Package kind and the
// packages below it do the work of the commands.
//
// Progress and messages go to standard error, answers to standard output. Exit codes: 0 success, 1
// failure, 2 usage error, 3 environment error.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

func main() { os.Exit(program.Main(newCommand)) }

// newCommand returns the root command. It reports progress to std.Err; program.Run sets the other
// streams.
func newCommand(std program.Streams) *cobra.Command {
	options := &kind.Options{Out: std.Err, Extension: cachetest.Extension()}
	root := group(&cobra.Command{
		Use:     "testbed",
		Short:   "Run two kind clusters as Gardener seed and shoot, with upstream registries and the extension",
		Version: program.Version(),
	})
	root.PersistentFlags().StringVar(&options.Prefix, "prefix", kind.DefaultPrefix,
		"name prefix of the clusters; testbeds with different prefixes can run side by side")
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Testbed", []*cobra.Command{
			newUpCommand(options), newStatusCommand(options), newDownCommand(options), newDoctorCommand(options),
			newKubeconfigCommand(options), newKubectlCommand(options), newExecCommand(options),
		}},
		{"Shoot", []*cobra.Command{newShootCommand(options), newPushCommand(options), newPullCommand(options)}},
		{"Break", []*cobra.Command{newFaultCommand(options), newReproduceCommand(options)}},
		{"Look", []*cobra.Command{newExportCommand(options)}},
		{"Develop", []*cobra.Command{
			newImageCommand(options), newExtensionCommand(options), newTestCommand(options), newGardenletCommand(options),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, command := range group.commands {
			command.GroupID = group.title
			root.AddCommand(command)
		}
	}
	return root
}
