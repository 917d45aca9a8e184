package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/snapshot"
)

func newSnapshotCommand(options *kind.Options) *cobra.Command {
	save := newSnapshotCopyCommand(options, "save NAME", "Store the content of the volumes of all caches",
		"print what would be stored, and store nothing", snapshot.Save)
	restore := newSnapshotCopyCommand(options, "restore NAME", "Replace the content of the caches with a snapshot, and restart them",
		"check whether the snapshot can be restored, and change nothing", snapshot.Restore)
	restore.ValidArgsFunction = complete(options, firstOnly(snapshotNames))
	return group(&cobra.Command{
		Use:   "snapshot",
		Short: "Save and restore the content of the caches",
		Long: `Save and restore the content of the caches. Snapshots are stored beside the testbed's folder, and
testbed down keeps them. They do not include the content of the upstreams.`,
	},
		save,
		restore,
		withJSON(&cobra.Command{
			Use:   "list",
			Short: "List the snapshots of this testbed",
			Args:  program.Args(cobra.NoArgs),
			RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
				all, err := snapshot.List(testbed)
				if err != nil {
					return err
				}
				all = append([]snapshot.Snapshot{}, all...) // prints [] instead of null
				return answer(cmd, all, func(out io.Writer) error { return writeSnapshots(out, all) })
			}),
		}, "print JSON"),
		withDryRun(&cobra.Command{
			Use:               "delete NAME",
			Short:             "Delete a snapshot",
			ValidArgsFunction: complete(options, firstOnly(snapshotNames)),
			Args:              program.Args(cobra.ExactArgs(1)),
			RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
				if err := snapshot.Delete(testbed, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.ErrOrStderr(), "snapshot %s deleted\n", args[0])
				return err
			}),
		}, options, func(_ *cobra.Command, testbed *kind.Testbed, args []string) ([]string, error) {
			return snapshot.PlanDelete(testbed, args[0])
		}),
	)
}

func newSnapshotCopyCommand(options *kind.Options, use, short, dryRunUsage string,
	run func(ctx context.Context, t *kind.Testbed, name string, dryRun bool) (*snapshot.Snapshot, error)) *cobra.Command {
	var dryRun bool
	cmd := withJSON(&cobra.Command{
		Use:   use,
		Short: short,
		Args:  program.Args(cobra.ExactArgs(1)),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			copied, err := run(cmd.Context(), testbed, args[0], dryRun)
			if err != nil {
				return err
			}
			return answer(cmd, copied, func(out io.Writer) error { return writeSnapshot(out, copied) })
		}),
	}, "print JSON")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, dryRunUsage)
	return cmd
}

func writeSnapshot(out io.Writer, one *snapshot.Snapshot) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\t%s\n", one.Name, size(one.Bytes()))
	for _, volume := range one.Volumes {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", volume.Upstream, size(volume.Bytes), volume.Claim)
	}
	return table.Flush()
}

func writeSnapshots(out io.Writer, all []snapshot.Snapshot) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSAVED\tSIZE\tVOLUMES")
	for _, one := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", one.Name, one.Created.Local().Format(time.DateTime), size(one.Bytes()), len(one.Volumes))
	}
	return table.Flush()
}

func size(bytes int64) string { return units.BytesSize(float64(bytes)) }
