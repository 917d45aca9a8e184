package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

func newKubeconfigCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var raw, asJSON bool
	cmd := &cobra.Command{
		Use:   "kubeconfig {seed|shoot}",
		Short: "Print the path of the kubeconfig of a cluster",
		Example: "  export KUBECONFIG=$(testbed kubeconfig seed)\n" +
			"  testbed kubeconfig shoot --raw > shoot.kubeconfig",
		ValidArgs: []string{kind.RoleSeed, kind.RoleShoot},
		Args:      program.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		RunE: func(_ *cobra.Command, args []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			path, err := testbed.Kubeconfig(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.Out, map[string]string{"cluster": args[0], "kubeconfig": path})
			}
			if !raw {
				_, err = fmt.Fprintln(std.Out, path)
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read the kubeconfig: %w", err)
			}
			_, err = std.Out.Write(content)
			return err
		},
	}
	addOutput(cmd, &asJSON, "print JSON, with the path")
	cmd.Flags().BoolVar(&raw, "raw", false, "print the content, which holds the key of an administrator")
	cmd.MarkFlagsMutuallyExclusive("raw", "json")
	cmd.MarkFlagsMutuallyExclusive("raw", "output")
	return cmd
}
