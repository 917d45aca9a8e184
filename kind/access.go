package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Roles of the testbed's clusters, as people name them.
const (
	RoleSeed  = "seed"
	RoleShoot = "shoot"
)

// Kubeconfig returns the path of the kubeconfig of the cluster with that role, which has the rights of an administrator. Without
// a testbed it is an ErrDown.
func (t *Testbed) Kubeconfig(role string) (string, error) {
	var path string
	switch role {
	case RoleSeed:
		path = t.state.seedKubeconfig()
	case RoleShoot:
		path = t.state.shootKubeconfig()
	default:
		return "", fmt.Errorf("cluster %q: want %s or %s", role, RoleSeed, RoleShoot)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", ErrDown
	} else if err != nil {
		return "", fmt.Errorf("kubeconfig of the %s: %w", role, err)
	}
	return path, nil
}

// UnknownNode says that the testbed has no node of that name.
type UnknownNode struct {
	// Name is the name that was asked for, Names are those that there are.
	Name  string
	Names []string
}

// Error lists the names.
func (e *UnknownNode) Error() string {
	return fmt.Sprintf("the testbed has no node %q, only %s", e.Name, strings.Join(e.Names, ", "))
}

// UsageError marks the error for internal/program: exit code 2.
func (*UnknownNode) UsageError() {}

// ShellArgv returns the command line that opens a shell on a node of either cluster: with a terminal if there is one, else bash
// reads its standard input. The node may be called by its name, or without what all names of the testbed, or of its shoot, begin
// with: worker2. Another name is an *UnknownNode; without a testbed it is an ErrDown.
func (t *Testbed) ShellArgv(ctx context.Context, node string, terminal bool) ([]string, error) {
	name, err := t.nodeName(ctx, node)
	if err != nil {
		return nil, err
	}
	return shellArgv(name, terminal), nil
}

// nodeName returns the whole name of the node that is meant, see ShellArgv.
func (t *Testbed) nodeName(ctx context.Context, wanted string) (string, error) {
	if err := t.attachOnce(ctx); err != nil {
		return "", err
	}
	var names []string
	for _, n := range slices.Concat(t.seed.Nodes(), t.shoot.Nodes()) {
		names = append(names, n.Name())
	}
	return matchNode(wanted, names, t.prefix+"-", t.shootName()+"-")
}

// attachOnce attaches unless Up or Attach was called before.
func (t *Testbed) attachOnce(ctx context.Context) error {
	if t.seed != nil && t.shoot != nil {
		return nil
	}
	return t.Attach(ctx)
}

// matchNode returns the one of names that is meant: itself, or without one of the prefixes.
func matchNode(wanted string, names []string, prefixes ...string) (string, error) {
	for _, prefix := range append([]string{""}, prefixes...) {
		if slices.Contains(names, prefix+wanted) {
			return prefix + wanted, nil
		}
	}
	return "", &UnknownNode{Name: wanted, Names: names}
}

// shellArgv is the command line for a container of that name.
func shellArgv(container string, terminal bool) []string {
	argv := []string{"docker", "exec", "--interactive"}
	if terminal {
		argv = append(argv, "--tty")
	}
	return append(argv, container, "bash")
}
