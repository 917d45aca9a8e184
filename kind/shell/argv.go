package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
)

// UnknownNode reports that the testbed has no node with a name. It is a usage error.
type UnknownNode struct {
	Name  string   // the unknown name
	Names []string // the names of all nodes
}

// Error implements error.
func (e *UnknownNode) Error() string {
	return fmt.Sprintf("the testbed has no node %q, only %s", e.Name, strings.Join(e.Names, ", "))
}

// UsageError marks the error for internal/program: exit code 2.
func (*UnknownNode) UsageError() {}

// Argv returns the command line that opens a shell on a node of either cluster. Without a terminal,
// bash reads its standard input. The prefix of the testbed or of its shoot may be left out of the
// node's name: worker2. The error is an *UnknownNode for an unknown name, and an ErrDown without a
// testbed.
func Argv(ctx context.Context, t *kind.Testbed, node string, terminal bool) ([]string, error) {
	name, err := nodeName(ctx, t, node)
	if err != nil {
		return nil, err
	}
	return shellArgv(name, terminal), nil
}

// nodeName returns the full name of a node, see Argv.
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

// matchNode returns the first of names that is wanted, or a prefix and wanted.
func matchNode(wanted string, names []string, prefixes ...string) (string, error) {
	for _, prefix := range append([]string{""}, prefixes...) {
		if slices.Contains(names, prefix+wanted) {
			return prefix + wanted, nil
		}
	}
	return "", &UnknownNode{Name: wanted, Names: names}
}

func shellArgv(container string, terminal bool) []string {
	argv := []string{"docker", "exec", "--interactive"}
	if terminal {
		argv = append(argv, "--tty")
	}
	return append(argv, container, "bash")
}
