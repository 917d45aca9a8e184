package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
)

// version can be set with -ldflags "-X <this package>.version=v1.2.3". Without it, the version is
// the one that the Go toolchain put into the program: builds of this repository have no VCS stamp.
var version string

func newVersionCommand(std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of testbed, Go, Gardener, and the programs in the node image",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if info, ok := debug.ReadBuildInfo(); ok && version == "" {
				version = info.Main.Version
			}
			versions := [][2]string{
				{"testbed", version}, {"go", runtime.Version()}, {"gardener", gardener.Version},
				{"kubernetes", nodeimage.KubernetesVersion}, {"containerd", nodeimage.ContainerdVersion},
			}
			if asJSON {
				answer := map[string]string{}
				for _, one := range versions {
					answer[one[0]] = one[1]
				}
				return writeJSON(std.Out, answer)
			}
			table := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
			for _, one := range versions {
				fmt.Fprintf(table, "%s\t%s\n", one[0], one[1])
			}
			return table.Flush()
		},
	}
	addOutput(cmd, &asJSON, "print JSON")
	return cmd
}
