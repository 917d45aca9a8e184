package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
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
		run        func(*kind.Testbed, context.Context) error
	}{
		{"reconcile", "Reconcile the Shoot as it is", (*kind.Testbed).ReconcileShoot},
		{"disable", "Take the extension out of the Shoot", (*kind.Testbed).DisableExtension},
		{"hibernate", "Bring the Shoot to sleep: its machines stop", (*kind.Testbed).HibernateShoot},
		{"wake", "Wake the Shoot up: its machines come back as fresh ones", (*kind.Testbed).WakeShoot},
		{"migrate", "Let the Shoot leave its seed; its state is kept in the testbed's folder", (*kind.Testbed).MigrateShoot},
		{"restore", "Bring a migrated Shoot to its new seed, for which a fresh namespace stands", (*kind.Testbed).RestoreShoot},
		{"rotate-ca-start", "Begin the rotation of the certificate authorities: nodes trust the old and the new one", (*kind.Testbed).StartRotation},
		{"rotate-ca-complete", "End it: the new authority alone is trusted", (*kind.Testbed).CompleteRotation},
		{"delete", "Delete the Shoot; the clusters stay", (*kind.Testbed).DeleteShoot},
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
				return operation.run(testbed, cmd.Context())
			},
		}, std, func(cmd *cobra.Command, _ []string) ([]string, error) {
			testbed, err := newTestbed(*options)
			if err != nil {
				return nil, err
			}
			return testbed.PlanShoot(cmd.Context(), operation.use)
		}))
	}
	return shoot
}
