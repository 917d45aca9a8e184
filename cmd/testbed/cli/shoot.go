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
		Short: "Lead the testbed's Shoot through its life, by gardenlet's flows",
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
		{"disable", "Take the extension out of the Shoot", operate.Disable},
		{"hibernate", "Bring the Shoot to sleep: its machines stop", operate.Hibernate},
		{"wake", "Wake the Shoot up: its machines come back as fresh ones", operate.WakeUp},
		{"migrate", "Let the Shoot leave its seed; its state is kept in the testbed's folder", operate.Migrate},
		{"restore", "Bring a migrated Shoot to its new seed, for which a fresh namespace stands", operate.Restore},
		{"rotate-ca-start", "Begin the rotation of the certificate authorities: nodes trust the old and the new one", operate.StartRotation},
		{"rotate-ca-complete", "End it: the new authority alone is trusted", operate.CompleteRotation},
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
