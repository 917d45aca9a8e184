package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

func newShootCommand(options *kind.Options, std program.Streams) *cobra.Command {
	shoot := &cobra.Command{
		Use:   "shoot",
		Short: "Create, change and delete the Shoot with gardenlet's flows",
		Long: "Lead the testbed's Shoot through its life, by gardenlet's flows. Each command but get runs alone on the testbed and\n" +
			"returns when the flow has succeeded; one that was interrupted is continued by the same command, a rotation by reconcile.",
		Args: cobra.ArbitraryArgs,
		RunE: program.Verbs,
	}
	shoot.AddCommand(newShootApplyCommand(options, std), newShootGetCommand(options, std))
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
		shoot.AddCommand(withDryRun(&cobra.Command{
			Use:   operation.use,
			Short: operation.short,
			Args:  program.Args(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				testbed, err := newTestbed(*options)
				if err != nil {
					return err
				}
				return operation.run(cmd.Context(), testbed)
			},
		}, std, func(cmd *cobra.Command, _ []string) ([]string, error) {
			testbed, err := newTestbed(*options)
			if err != nil {
				return nil, err
			}
			return operate.Plan(cmd.Context(), testbed, operation.use)
		}))
	}
	return shoot
}
