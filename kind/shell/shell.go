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

// outputTimeout is how long another process may keep the output of an ended program open.
const outputTimeout = 2 * time.Second

// adminKubeconfig is the path of kubeadm's kubeconfig for administrators on a control plane.
const adminKubeconfig = "/etc/kubernetes/admin.conf"

// Streams are the standard streams of a program. Nil streams are empty or discarded.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exec runs a program on a node of either cluster, as root, and returns its exit code. Names of
// nodes and errors are those of Argv. Input and output are streamed. When ctx ends, the error is
// its cause; the program on the node continues until it reads or writes.
func Exec(ctx context.Context, t *kind.Testbed, node string, argv []string, streams Streams) (int, error) {
	name, err := nodeName(ctx, t, node)
	if err != nil {
		return 0, err
	}
	return Run(ctx, slices.Concat([]string{"docker", "exec", "--interactive", name}, argv), streams)
}

// Kubectl runs kubectl as administrator on the control plane of the cluster with that role,
// RoleSeed or RoleShoot, and returns its exit code. Files in args are on the node; - is the input.
// Errors are those of Exec.
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

// Run runs a program on this machine and returns its exit code. When ctx ends, the error is its
// cause.
func Run(ctx context.Context, argv []string, streams Streams) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = streams.Out, streams.Err, outputTimeout
	if err := Feed(cmd, streams.In); err != nil {
		return 0, fmt.Errorf("run %s: %w", argv[0], err)
	}
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

// Feed sets the program's input. An input that is not a file is copied in the background: exec.Cmd
// would wait until it ends, which it may never do.
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
		_, _ = io.Copy(pipe, in) // the program may not read all of it
		_ = pipe.Close()
	}()
	return nil
}
