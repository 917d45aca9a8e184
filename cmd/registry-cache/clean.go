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
		Short: "Remove the configuration of deleted caches from containerd on this node",
		Long: "Remove the configuration of deleted caches from containerd on this node.\n" +
			"It removes only files that the extension wrote. A second run changes nothing.",
		Args: program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := request.Validate(); err != nil {
				return program.Usage(err)
			}
			directory, err := os.OpenRoot(root)
			if err != nil {
				return program.Environment(fmt.Errorf("opening the node's root directory (--root): %w", err))
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
	cmd.Flags().StringArrayVar(&request.Upstreams, "upstream", nil, "upstream to remove, as <host>[:<port>]; repeatable")
	cmd.Flags().BoolVar(&request.All, "all", false, "remove the configuration of all upstreams")
	cmd.Flags().StringVar(&root, "root", "/host", "directory below which the node's directories are mounted")
	return cmd
}
