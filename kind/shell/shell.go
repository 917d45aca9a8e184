package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
)

// executeGrace is how long the output of a program that has ended, or was killed, may be held open by another one.
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
func Exec(ctx context.Context, t *kind.Testbed, node string, argv []string, streams Streams) (int, error) {
	name, err := nodeName(ctx, t, node)
	if err != nil {
		return 0, err
	}
	return Run(ctx, slices.Concat([]string{"docker", "exec", "--interactive", name}, argv), streams)
}

// Kubectl runs kubectl on the control plane of the cluster with that role, RoleSeed or RoleShoot, as its administrator, and returns
// its exit code. Files that the arguments name are the node's, - is the input. It fails as Exec does.
func Kubectl(ctx context.Context, t *kind.Testbed, role string, args []string, streams Streams) (int, error) {
	if role != kind.RoleSeed && role != kind.RoleShoot {
		return 0, fmt.Errorf("cluster %q: want %s or %s", role, kind.RoleSeed, kind.RoleShoot)
	}
	if err := t.AttachOnce(ctx); err != nil {
		return 0, err
	}
	node := t.Seed.ControlPlane()
	if role == kind.RoleShoot {
		node = t.Shoot.ControlPlane()
	}
	return Run(ctx, kubectlArgv(node.Name(), args), streams)
}

func kubectlArgv(node string, args []string) []string {
	return slices.Concat([]string{"docker", "exec", "--interactive", "--env", "KUBECONFIG=" + adminKubeconfig, node, "kubectl"}, args)
}

// execute runs a program of this machine and returns its exit code.
func Run(ctx context.Context, argv []string, streams Streams) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = streams.Out, streams.Err, executeGrace
	if err := Feed(cmd, streams.In); err != nil {
		return 0, fmt.Errorf("run %s: %w", argv[0], err)
	}
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it has ended well
		return 0, nil
	case errors.As(err, &failed) && failed.Exited():
		return failed.ExitCode(), nil
	default:
		return 0, fmt.Errorf("run %s: %w", argv[0], err)
	}
}

// feed gives the program its input. Wait would wait until an input that is no file has ended, which it may never: it is copied
// beside it.
func Feed(cmd *exec.Cmd, in io.Reader) error {
	file, isFile := in.(*os.File)
	if isFile || in == nil {
		if file != nil {
			cmd.Stdin = file
		}
		return nil
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(pipe, in) // a program need not read all of it
		_ = pipe.Close()
	}()
	return nil
}
