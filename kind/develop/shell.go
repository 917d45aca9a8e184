package develop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// outputTimeout bounds how long run waits for the end of the output after the program has ended.
// Another process may keep the output open.
const outputTimeout = 2 * time.Second

// adminKubeconfig is the path of kubeadm's kubeconfig for administrators on a control plane.
const adminKubeconfig = "/etc/kubernetes/admin.conf"

// Streams are a program's standard streams. A nil In is empty, and a nil Out or Err is discarded.
// An In that is not a file must end: programs do not end before it.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // the program gets a terminal; In and Out must be terminals
}

// Exec runs a program on a node of either cluster, as root, and returns its exit code. The node's
// name may omit the prefix of the testbed or shoot, for example worker2. The error is an
// *UnknownNodeError for an unknown name, and kind.ErrDown without a testbed. Input and output are
// streamed. When ctx ends, the error is the cause of ctx; the program on the node continues until
// it reads or writes.
func Exec(ctx context.Context, t *kind.Testbed, node string, argv []string, streams Streams) (int, error) {
	if err := t.Attach(ctx); err != nil {
		return 0, err
	}
	name, err := matchNode(node, cluster.Names(t.Nodes()), t.Prefix+"-", t.ShootName()+"-")
	if err != nil {
		return 0, err
	}
	return run(ctx, execArgv(name, streams.Terminal, argv...), streams)
}

func execArgv(node string, terminal bool, argv ...string) []string {
	all := []string{"docker", "exec", "--interactive"}
	if terminal {
		all = append(all, "--tty")
	}
	return append(append(all, node), argv...)
}

// Kubectl runs kubectl as administrator on the control plane of a kind.Role, and returns its exit
// code. The control plane of RoleGarden is the seed's, and the namespace of the project is its
// default. File names in args refer to the node, and "-" to streams.In. Errors are those of
// kind.CheckRole and as in Exec.
func Kubectl(ctx context.Context, t *kind.Testbed, role string, args []string, streams Streams) (int, error) {
	if err := t.CheckRole(role); err != nil {
		return 0, err
	}
	if err := t.Attach(ctx); err != nil {
		return 0, err
	}
	node := t.Seed.ControlPlane()
	if role == kind.RoleShoot {
		node = t.Shoot.ControlPlane()
	}
	return run(ctx, kubectlArgv(node.Name(), role, args), streams)
}

func kubectlArgv(node, role string, args []string) []string {
	argv := []string{"docker", "exec", "--interactive", "--env", "KUBECONFIG=" + adminKubeconfig, node, "kubectl"}
	if role == kind.RoleGarden {
		argv = append(argv, "--namespace="+gardenlet.ProjectNamespace) // a later --namespace wins
	}
	return append(argv, args...)
}

// run runs a program on this machine and returns its exit code. If ctx ends, the error is the cause
// of ctx.
func run(ctx context.Context, argv []string, streams Streams) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = streams.In, streams.Out, streams.Err, outputTimeout
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it succeeded
		return 0, nil
	case errors.As(err, &failed) && failed.Exited():
		return failed.ExitCode(), nil
	default:
		return 0, fmt.Errorf("run %s: %w", argv[0], err)
	}
}

// UnknownNodeError reports that the testbed has no node with this name. It is a usage error.
type UnknownNodeError struct {
	Name  string   // the unknown name
	Names []string // the names of all nodes
}

func (e *UnknownNodeError) Error() string {
	return fmt.Sprintf("the testbed has no node %q, only %s", e.Name, strings.Join(e.Names, ", "))
}

// UsageError marks the error as a usage error: internal/program exits with code 2.
func (*UnknownNodeError) UsageError() {}

// matchNode returns the entry of names that equals wanted, or else a prefix plus wanted.
func matchNode(wanted string, names []string, prefixes ...string) (string, error) {
	for _, prefix := range append([]string{""}, prefixes...) {
		if slices.Contains(names, prefix+wanted) {
			return prefix + wanted, nil
		}
	}
	return "", &UnknownNodeError{Name: wanted, Names: names}
}
