package cli

import (
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

func newSnapshotCommand(options *kind.Options, std program.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save and restore the content of the caches",
		Long: "Keep what the caches have stored, and bring it back. Snapshots lie beside the testbed's folder until they are deleted: `down`\n" +
			"leaves them. What is in the upstreams is not part of them.",
		Args: cobra.ArbitraryArgs,
		RunE: program.Verbs,
	}
	cmd.AddCommand(newSnapshotSaveCommand(options, std), newSnapshotRestoreCommand(options, std),
		newSnapshotListCommand(options, std), newSnapshotDeleteCommand(options, std))
	return cmd
}

func newSnapshotSaveCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "save NAME",
		Short: "Store the content of the volumes of all caches",
		Args:  program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			saved, err := snapshot.Save(cmd.Context(), testbed, args[0], dryRun)
			if err != nil {
				return err
			}
			return writeSnapshot(std.Out, saved, asJSON)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be stored, and store nothing")
	addOutput(cmd, &asJSON, "print JSON")
	return cmd
}

func newSnapshotRestoreCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "restore NAME",
		Short: "Replace the content of the caches with a snapshot, and restart them",
		Args:  program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			restored, err := snapshot.Restore(cmd.Context(), testbed, args[0], dryRun)
			if err != nil {
				return err
			}
			return writeSnapshot(std.Out, restored, asJSON)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "look whether it can be restored, and change nothing")
	addOutput(cmd, &asJSON, "print JSON")
	return completed(cmd, options, only(nameSnapshots))
}

func newSnapshotListCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the snapshots of this testbed",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			all, err := snapshot.List(testbed)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.Out, append([]snapshot.Snapshot{}, all...)) // [], not null
			}
			return writeSnapshots(std.Out, all)
		},
	}
	addOutput(cmd, &asJSON, "print JSON")
	return cmd
}

func newSnapshotDeleteCommand(options *kind.Options, std program.Streams) *cobra.Command {
	return withDryRun(completed(&cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a snapshot",
		Args:  program.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			if err := snapshot.Delete(testbed, args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.Err, "snapshot %s deleted\n", args[0])
			return err
		},
	}, options, only(nameSnapshots)), std, func(_ *cobra.Command, args []string) ([]string, error) {
		testbed, err := newTestbed(*options)
		if err != nil {
			return nil, err
		}
		return snapshot.PlanDelete(testbed, args[0])
	})
}

func writeSnapshot(out io.Writer, one *snapshot.Snapshot, asJSON bool) error {
	if asJSON {
		return writeJSON(out, one)
	}
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
