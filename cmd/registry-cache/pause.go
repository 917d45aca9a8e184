package main

import "github.com/spf13/cobra"

func newPauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause",
		Short: "Do nothing until SIGTERM, so that a pod stays ready after its init container has done the work",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			<-cmd.Context().Done()
			return nil
		},
	}
}
