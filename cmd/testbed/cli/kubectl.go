package cli

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

func newKubectlCommand(options *kind.Options, std program.Streams) *cobra.Command {
	roles := []string{kind.RoleSeed, kind.RoleShoot}
	cmd := &cobra.Command{
		Use:   "kubectl {seed|shoot} [ARGUMENT...]",
		Short: "Run kubectl in a cluster, as its administrator, with this standard input and with its output and exit code",
		Long: "Run the kubectl of the cluster's control plane node, as administrator of the cluster. Arguments are passed on as they are.\n" +
			"Files that they name are the node's; a file of this machine goes in by standard input: -f -.",
		Example: "  testbed kubectl shoot -n kube-system get pods -o wide\n" +
			"  testbed kubectl seed apply -f - <object.yaml",
		ValidArgs: roles,
		Args: program.Args(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || !slices.Contains(roles, args[0]) {
				return errors.New("name a cluster, seed or shoot")
			}
			return nil
		}),
	}
	return passedOn(cmd, options, std, shell.Kubectl)
}
