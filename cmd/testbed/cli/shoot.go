package cli

import (
	"context"
	"errors"

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
		run        func(*kind.Testbed, context.Context) error
	}{
		{"reconcile", "Reconcile the Shoot as it is", func(ctx context.Context) error { return operate.Reconcile(ctx, (*kind.Testbed)) }},
		{"disable", "Take the extension out of the Shoot", func(ctx context.Context) error { return operate.Disable(ctx, (*kind.Testbed)) }},
		{"hibernate", "Bring the Shoot to sleep: its machines stop", func(ctx context.Context) error { return operate.Hibernate(ctx, (*kind.Testbed)) }},
		{"wake", "Wake the Shoot up: its machines come back as fresh ones", func(ctx context.Context) error { return operate.WakeUp(ctx, (*kind.Testbed)) }},
		{"migrate", "Let the Shoot leave its seed; its state is kept in the testbed's folder", func(ctx context.Context) error { return operate.Migrate(ctx, (*kind.Testbed)) }},
		{"restore", "Bring a migrated Shoot to its new seed, for which a fresh namespace stands", func(ctx context.Context) error { return operate.Restore(ctx, (*kind.Testbed)) }},
		{"rotate-ca-start", "Begin the rotation of the certificate authorities: nodes trust the old and the new one", func(ctx context.Context) error { return operate.StartRotation(ctx, (*kind.Testbed)) }},
		{"rotate-ca-complete", "End it: the new authority alone is trusted", func(ctx context.Context) error { return operate.CompleteRotation(ctx, (*kind.Testbed)) }},
		{"delete", "Delete the Shoot; the clusters stay", func(ctx context.Context) error { return operate.Delete(ctx, (*kind.Testbed)) }},
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
				return explainStage(operation.run(testbed, cmd.Context()))
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

// explainStage maps an operation that is not possible for the Shoot as it stands to wrong use.
func explainStage(err error) error {
	var (
		stage    *operate.WrongStage
		rotation *operate.WrongRotation
	)
	if errors.As(err, &stage) || errors.As(err, &rotation) {
		return program.Usage(err)
	}
	return err
}
