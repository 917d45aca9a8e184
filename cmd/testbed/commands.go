package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/kind"
)

func newUpCommand(options *kind.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the testbed up, or repair and update the one that is there",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			return testbed.Up(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&options.NodeImage, "node-image", os.Getenv("NODE_IMAGE"),
		"a stock kindest/node image instead of our own (default $NODE_IMAGE)")
	return cmd
}

func newDownCommand(options *kind.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the testbed: containers, volumes, networks and processes",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			return testbed.Down(cmd.Context())
		},
	}
}

func newStatusCommand(options *kind.Options, std streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show clusters, nodes with their hosts.toml, caches, upstreams and versions",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			status, err := testbed.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(std.out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			return status.Write(std.out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
