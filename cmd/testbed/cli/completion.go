package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// shells are those that cobra can complete for.
var shells = map[string]func(root *cobra.Command, out io.Writer) error{
	"bash": func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
	"zsh":  func(root *cobra.Command, out io.Writer) error { return root.GenZshCompletion(out) },
	"fish": func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
}

func newCompletionCommand(std program.Streams) *cobra.Command {
	return &cobra.Command{
		Use:       "completion {bash|zsh|fish}",
		Short:     "Generate a shell completion script",
		Example:   "  source <(testbed completion bash)",
		Args:      program.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := shells[args[0]](cmd.Root(), std.Out); err != nil {
				return fmt.Errorf("completion for %s: %w", args[0], err)
			}
			return nil
		},
	}
}
