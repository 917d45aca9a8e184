package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/manifest"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// standardInput is what standard input is called among names of files.
const standardInput = "-"

func newShootApplyCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var (
		name   string
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or reconcile the Shoot that a manifest describes, with the Secrets that it refers to",
		Long: "Create or reconcile the Shoot that a manifest describes. The file holds one Shoot, and the Secrets that it refers to;\n" +
			"unknown fields are refused. Extensions, resources, purpose and hibernation are the manifest's; name, machines, networks,\n" +
			"versions and cloud stay the testbed's, and what is not used of the manifest is named on standard error.",
		Args: program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := readManifest(name, cmd.InOrStdin())
			if err != nil {
				return err
			}
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			if err := showShoot(wanted, dryRun, std); err != nil || dryRun {
				return err
			}
			return operate.Apply(cmd.Context(), testbed, wanted)
		},
	}
	cmd.Flags().StringVarP(&name, "filename", "f", "", "the manifest; - is standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the Shoot that would be applied, and change nothing")
	return cmd
}

// readManifest reads a manifest; what is wrong with the file is a usage error.
func readManifest(name string, stdin io.Reader) (*manifest.Manifest, error) {
	switch name {
	case "":
		return nil, program.Usage(errors.New("name a manifest: testbed shoot apply -f FILE (- is standard input)"))
	case standardInput:
		wanted, err := manifest.Read("standard input", stdin)
		if err != nil {
			return nil, program.Usage(err)
		}
		return wanted, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, program.Usage(fmt.Errorf("read the manifest: %w", err))
	}
	wanted, err := manifest.Read(name, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, program.Usage(err)
	}
	return wanted, nil
}

// showShoot says what of the manifest is not used; for a dry run it prints the Shoot, too.
func showShoot(wanted *manifest.Manifest, dryRun bool, std program.Streams) error {
	shoot, replaced, err := manifest.Overlay(wanted.Shoot, gardenlet.Shoot())
	if err != nil {
		return err
	}
	if len(replaced) > 0 {
		fmt.Fprintln(std.Err, "Of the manifest these fields are not used, the testbed has its own:")
	}
	for _, replacement := range replaced {
		fmt.Fprintf(std.Err, "  %s\n", replacement)
	}
	for _, ignored := range operate.OtherExtensions(shoot) {
		fmt.Fprintf(std.Err, "No extension of type %s is installed here: gardenlet passes it over.\n", ignored)
	}
	if !dryRun {
		return nil
	}
	text, err := yaml.Marshal(shoot)
	if err != nil {
		return fmt.Errorf("print the Shoot: %w", err)
	}
	_, err = std.Out.Write(text)
	return err
}
