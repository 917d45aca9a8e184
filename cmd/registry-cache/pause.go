package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

func newPauseCommand(std program.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "pause",
		Short: "Wait for SIGTERM, to keep a pod running after its init container",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(std.Err, "pausing until SIGTERM")
			<-cmd.Context().Done()
			return nil
		},
	}
}
