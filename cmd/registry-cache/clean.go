package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

func newCleanCommand(std program.Streams) *cobra.Command {
	var (
		request cleaner.Request
		root    string
	)
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what configures containerd for caches that go away from the node this runs on",
		Long: "Remove what configures containerd for caches that go away from the node this runs on.\n" +
			"Only files that carry the mark of the extension are removed. A second run changes nothing.",
		Args: program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := request.Validate(); err != nil {
				return program.Usage(err)
			}
			directory, err := os.OpenRoot(root)
			if err != nil {
				return program.Environment(fmt.Errorf("cannot open the node's root directory (--root): %w", err))
			}
			defer func() { _ = directory.Close() }()
			systemd, err := cleaner.Connect(root)
			if err != nil {
				return program.Environment(err)
			}
			defer systemd.Close()
			return cleaner.Clean(cmd.Context(), cleaner.Node{Root: directory, Units: systemd, Log: std.Err}, request)
		},
	}
	cmd.Flags().StringArrayVar(&request.Upstreams, "upstream", nil,
		"upstream whose cache goes away, as <host>[:<port>]; repeatable")
	cmd.Flags().BoolVar(&request.All, "all", false,
		"every cache goes away: remove the configuration of every upstream")
	cmd.Flags().StringVar(&root, "root", "/host", "directory that the node's directories are mounted below")
	return cmd
}
