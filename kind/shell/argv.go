package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
)

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
func Argv(ctx context.Context, t *kind.Testbed, node string, terminal bool) ([]string, error) {
	name, err := nodeName(ctx, t, node)
	if err != nil {
		return nil, err
	}
	return shellArgv(name, terminal), nil
}

// nodeName returns the whole name of the node that is meant, see ShellArgv.
func nodeName(ctx context.Context, t *kind.Testbed, wanted string) (string, error) {
	if err := t.AttachOnce(ctx); err != nil {
		return "", err
	}
	var names []string
	for _, n := range t.Nodes() {
		names = append(names, n.Name())
	}
	return matchNode(wanted, names, t.Prefix+"-", t.ShootName()+"-")
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
