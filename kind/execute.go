package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"
)

// executeGrace is how long the streams of a program that has ended may still be in use. Only what nobody reads any more comes
// later: an input that is not a file and does not end.
const executeGrace = 2 * time.Second

// adminKubeconfig is where kubeadm puts the administrator's kubeconfig on a control plane.
const adminKubeconfig = "/etc/kubernetes/admin.conf"

// Streams are what a program on a node reads and writes. Nil is nothing.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exec runs a program on a node of either cluster, as root, and returns its exit code. The node may be called as for ShellArgv;
// another name is an *UnknownNode, and without a testbed the error is an ErrDown. Nothing of what the program reads and writes is
// held in memory. When ctx ends the error has its cause; the program goes on then, until it reads or writes.
func (t *Testbed) Exec(ctx context.Context, node string, argv []string, streams Streams) (int, error) {
	line, err := t.ExecArgv(ctx, node, argv)
	if err != nil {
		return 0, err
	}
	return execute(ctx, line, streams)
}

// ExecArgv returns the command line by which Exec runs the program.
func (t *Testbed) ExecArgv(ctx context.Context, node string, argv []string) ([]string, error) {
	name, err := t.nodeName(ctx, node)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]string{"docker", "exec", "--interactive", name}, argv), nil
}

// Kubectl runs kubectl on the control plane of the cluster with that role, RoleSeed or RoleShoot, as its administrator, and returns
// its exit code. Files that the arguments name are the node's, - is the input. It fails as Exec does.
func (t *Testbed) Kubectl(ctx context.Context, role string, args []string, streams Streams) (int, error) {
	line, err := t.KubectlArgv(ctx, role, args)
	if err != nil {
		return 0, err
	}
	return execute(ctx, line, streams)
}

// KubectlArgv returns the command line by which Kubectl runs kubectl.
func (t *Testbed) KubectlArgv(ctx context.Context, role string, args []string) ([]string, error) {
	if role != RoleSeed && role != RoleShoot {
		return nil, fmt.Errorf("cluster %q: want %s or %s", role, RoleSeed, RoleShoot)
	}
	if err := t.attachOnce(ctx); err != nil {
		return nil, err
	}
	node := t.seed.ControlPlane()
	if role == RoleShoot {
		node = t.shoot.ControlPlane()
	}
	return kubectlArgv(node.Name(), args), nil
}

func kubectlArgv(node string, args []string) []string {
	return slices.Concat([]string{"docker", "exec", "--interactive", "--env", "KUBECONFIG=" + adminKubeconfig, node, "kubectl"}, args)
}

// execute runs a program of this machine and returns its exit code.
func execute(ctx context.Context, argv []string, streams Streams) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.In, streams.Out, streams.Err
	cmd.WaitDelay = executeGrace
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it has ended well, its input has not
		return 0, nil
	case errors.As(err, &failed) && failed.Exited():
		return failed.ExitCode(), nil
	default:
		return 0, fmt.Errorf("run %s: %w", argv[0], err)
	}
}
