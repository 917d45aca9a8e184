package main

import (
	"context"
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

func newShootCommand(options *kind.Options) *cobra.Command {
	shoot := group(&cobra.Command{
		Use:   "shoot",
		Short: "Create, change and delete the Shoot with gardenlet's flows",
		Long: `Create, change and delete the Shoot with gardenlet's flows. Each command locks the testbed and
returns when the flow has succeeded. To continue after an interruption, run the same command again;
to continue a rotation, run reconcile. Look at its objects with testbed kubectl seed -n
shoot--local--local.`,
	}, newShootApplyCommand(options))
	for _, operation := range []struct {
		use, short string
		run        func(context.Context, *kind.Testbed) error
	}{
		{"reconcile", "Reconcile the Shoot as it is", operate.Reconcile},
		{"disable", "Disable the extension in the Shoot", operate.Disable},
		{"hibernate", "Hibernate the Shoot: its machines stop", operate.Hibernate},
		{"wake", "Wake the Shoot up: it gets new machines", operate.WakeUp},
		{"migrate", "Migrate the Shoot off its seed, and keep its state in the testbed's folder", operate.Migrate},
		{"restore", "Restore a migrated Shoot on its new seed, in a new namespace", operate.Restore},
		{"rotate-ca-start", "Start the rotation of the CAs: nodes trust the old and the new CA", operate.StartRotation},
		{"rotate-ca-complete", "Complete the rotation of the CAs: nodes trust only the new CA", operate.CompleteRotation},
		{"delete", "Delete the Shoot; the clusters stay", operate.Delete},
	} {
		shoot.AddCommand(&cobra.Command{
			Use:   operation.use,
			Short: operation.short,
			Args:  program.Args(cobra.NoArgs),
			RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
				return operation.run(cmd.Context(), testbed)
			}),
		})
	}
	return shoot
}

// standardInput is the file name that means standard input.
const standardInput = "-"

func newShootApplyCommand(options *kind.Options) *cobra.Command {
	var (
		name   string
		dryRun bool
		wanted *manifest.Manifest
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or reconcile the Shoot of a manifest, with the Secrets that it refers to",
		Long: `Create or reconcile the Shoot of a manifest. The file has one Shoot and the Secrets that it refers
to; unknown fields are errors. Extensions, resources, purpose and hibernation are taken from the
manifest. Name, machines, networks, versions and cloud are those of the testbed; standard error
lists the fields of the manifest that are not used.`,
		Args: program.Args(cobra.NoArgs),
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			wanted, err = readManifest(name, cmd.InOrStdin())
			return program.Usage(err)
		},
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			if err := showShoot(cmd, testbed, wanted, dryRun); err != nil || dryRun {
				return err
			}
			return operate.Apply(cmd.Context(), testbed, wanted)
		}),
	}
	cmd.Flags().StringVarP(&name, "filename", "f", "", "the manifest; - is standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the Shoot that would be applied, and change nothing")
	return cmd
}

func readManifest(name string, stdin io.Reader) (*manifest.Manifest, error) {
	switch name {
	case "":
		return nil, errors.New("name a manifest: testbed shoot apply -f FILE (- is standard input)")
	case standardInput:
		return manifest.Read("standard input", stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	return manifest.Read(name, file)
}

// showShoot lists unused parts of the manifest on standard error. With dryRun it prints the Shoot.
func showShoot(cmd *cobra.Command, testbed *kind.Testbed, wanted *manifest.Manifest, dryRun bool) error {
	shoot, replaced, err := manifest.Overlay(wanted.Shoot, gardenlet.Shoot())
	if err != nil {
		return err
	}
	if len(replaced) > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "These fields of the manifest are not used, the testbed has its own:")
	}
	for _, replacement := range replaced {
		fmt.Fprintf(cmd.ErrOrStderr(), "  %s\n", replacement)
	}
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
