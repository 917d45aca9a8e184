package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
)

func newUpCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var (
		name   string
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the testbed, or repair and update an existing one",
		Long: "Bring the testbed up, or repair and update the one that is there. A file says what it is to be: workers, IP family, kube-proxy's\n" +
			"mode, feature gates, containerd, upstreams, the Shoot. Without one it stays what the file before said; where there was none, it\n" +
			"has two workers with IPv4 and caches for two of three upstreams. What can be changed in a running testbed is; for the rest the\n" +
			"clusters are built again. --dry-run says which, and prints the configuration with its defaults.",
		Example: "  testbed up\n  testbed up -f examples/testbed/testbed.yaml --dry-run\n  testbed up --dry-run > testbed.yaml",
		Args:    program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			asked := *options
			var err error
			if asked.Configuration, err = readConfiguration(name, cmd.InOrStdin()); err != nil {
				return err
			}
			testbed, err := newTestbed(asked)
			if err != nil {
				return err
			}
			changes, up, err := bringup.Plan(testbed)
			if err != nil {
				return err
			}
			writeChanges(std.Err, changes, up)
			if dryRun {
				return writeConfiguration(std.Out, testbed.Config)
			}
			if err := bringup.Up(cmd.Context(), testbed); err != nil {
				return err
			}
			_, err = fmt.Fprint(std.Err, next(testbed))
			return err
		},
	}
	cmd.Flags().StringVarP(&name, "filename", "f", "", "what the testbed is to be; - is standard input (docs/configuration.md)")
	cmd.Flags().StringVar(&options.NodeImage, "node-image", os.Getenv("NODE_IMAGE"),
		"a stock kindest/node image instead of our own, and of that in the file (default $NODE_IMAGE)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the configuration with its defaults and say what would change, and change nothing")
	return cmd
}

// readConfiguration returns nil without a name. What is wrong with a file, or with the manifest
// that it names, is a usage error.
func readConfiguration(name string, stdin io.Reader) (*configuration.Testbed, error) {
	var (
		read *configuration.Testbed
		err  error
	)
	switch name {
	case "":
		return nil, nil
	case standardInput:
		read, err = configuration.Read("standard input", ".", stdin)
	default:
		read, err = configuration.Load(name)
	}
	if err != nil {
		return nil, program.Usage(err)
	}
	if path := read.Shoot.Manifest; path != "" {
		if _, err := readManifest(path, nil); err != nil {
			return nil, program.Usage(fmt.Errorf("shoot.manifest: %w", err))
		}
	}
	return read, nil
}

// writeChanges says what becomes of a testbed that is there.
func writeChanges(out io.Writer, changes []configuration.Change, up bool) {
	if !up || len(changes) == 0 {
		return
	}
	fmt.Fprintln(out, "The testbed that is there changes:")
	for _, change := range changes {
		fmt.Fprintf(out, "  %s\n", change)
	}
}

func writeConfiguration(out io.Writer, config *configuration.Testbed) error {
	data, err := config.Encode()
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
