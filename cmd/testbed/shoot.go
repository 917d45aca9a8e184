package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

func newShootCommand(options *kind.Options) *cobra.Command {
	shoot := group(&cobra.Command{
		Use:   "shoot",
		Short: "Create, change and delete the Shoot with gardenlet's flows",
		Long: `Create, change and delete the Shoot with gardenlet's flows. Each command locks the testbed and
returns when the flow has succeeded. To continue after an interruption, run the same command again;
to continue a rotation, run reconcile. Look at its objects with testbed kubectl seed -n
shoot--local--local.

With a garden, each command changes the Shoot in the garden, and waits until gardenlet has finished.
After an interruption gardenlet continues.`,
	}, newShootApplyCommand(options))
	for _, operation := range operate.Operations() {
		shoot.AddCommand(&cobra.Command{
			Use:   operation.Name,
			Short: operation.Short,
			Args:  program.Args(cobra.NoArgs),
			RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
				return operation.Run(cmd.Context(), testbed)
			}),
		})
	}
	return shoot
}

// newGardenletCommand returns the command of the process that `testbed up` starts for a garden.
func newGardenletCommand(options *kind.Options) *cobra.Command {
	return &cobra.Command{
		Use:    bringup.GardenletCommand,
		Short:  "Run gardenlet's controllers for a testbed with a garden, until it is interrupted",
		Hidden: true,
		Args:   program.Args(cobra.NoArgs),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			return testbed.ManageGarden(cmd.Context())
		}),
	}
}

// standardInput is the file name that means standard input.
const standardInput = "-"

func newShootApplyCommand(options *kind.Options) *cobra.Command {
	var (
		name   string
		dryRun bool
		wanted *operate.Manifest
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or reconcile the Shoot of a manifest, with the Secrets that it refers to",
		Long: `Create or reconcile the Shoot of a manifest. The file contains one Shoot and the Secrets that it
refers to; unknown fields are errors. Labels, annotations, extensions, resources, purpose,
hibernation, maintenance, monitoring and systemComponents are taken from the manifest. Everything
else, such as name, machines, networks, versions and cloud, comes from the testbed: compare with
--dry-run.`,
		Args: program.Args(cobra.NoArgs),
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			wanted, err = readManifest(name, cmd.InOrStdin())
			return program.Usage(err)
		},
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			if err := showShoot(cmd, testbed, wanted, dryRun); err != nil || dryRun {
				return err
			}
			return operate.Apply(wanted).Run(cmd.Context(), testbed)
		}),
	}
	cmd.Flags().StringVarP(&name, "filename", "f", "", "the manifest; - is standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the Shoot that would be applied, and change nothing")
	return cmd
}

func readManifest(name string, stdin io.Reader) (*operate.Manifest, error) {
	switch name {
	case "":
		return nil, errors.New("name a manifest: testbed shoot apply -f FILE (- is standard input)")
	case standardInput:
		return operate.ReadManifest("standard input", stdin)
	}
	return operate.LoadManifest(name)
}

// showShoot lists ignored extensions on standard error. With dryRun it prints the Shoot.
func showShoot(cmd *cobra.Command, testbed *kind.Testbed, wanted *operate.Manifest, dryRun bool) error {
	shoot := wanted.Overlay(gardenlet.Shoot())
	for _, ignored := range operate.OtherExtensions(testbed, shoot) {
		fmt.Fprintf(cmd.ErrOrStderr(), "No extension of type %s is installed: gardenlet skips it.\n", ignored)
	}
	if !dryRun {
		return nil
	}
	text, err := yaml.Marshal(shoot)
	if err != nil {
		return fmt.Errorf("print the Shoot: %w", err)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
