package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/utils"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// installAgent writes the program to the node unless the node has it. A running agent continues.
func (n *Node) installAgent(ctx context.Context, program []byte) error {
	if program == nil {
		return nil
	}
	ctx, cancel := progress.Within(ctx, installTimeout, "the agent is not installed")
	defer cancel()
	found, err := n.Exec(ctx, "sha256sum", "--", agentPath)
	if err == nil && strings.HasPrefix(found, utils.ComputeSHA256Hex(program)+" ") {
		return nil
	}
	if err := n.WriteFile(ctx, agentPath, 0o755, program); err != nil {
		return fmt.Errorf("install the agent: %w", err)
	}
	n.agent.retry()
	return nil
}

// runByAgent runs a program and returns its standard output. The error is a *command.Error like
// that of a `docker exec`, or wraps nodeexec.ErrNotRun if the program was not started.
func (n *Node) runByAgent(ctx context.Context, stdin io.Reader, argv []string) (string, error) {
	conn, err := n.agent.connection(ctx)
	if err != nil {
		return "", err
	}
	var stdout, all bytes.Buffer
	err = conn.Run(ctx, nodeexec.Command{Argv: argv, Stdin: stdin, Stdout: io.MultiWriter(&stdout, &all), Stderr: &all})
	if err == nil || errors.Is(err, nodeexec.ErrNotRun) {
		return stdout.String(), err
	}
	failed := &exec.RunError{Command: dockerExec(n.Name(), stdin != nil, argv...), Output: all.Bytes(), Inner: err}
	return stdout.String(), command.Explain(ctx, failed)
}

// dockerExec returns the docker command with which kind runs a command on a node.
func dockerExec(node string, stdin bool, argv ...string) []string {
	prefix := []string{"docker", "exec", "--privileged"}
	if stdin {
		prefix = append(prefix, "-i")
	}
	return slices.Concat(prefix, []string{node}, argv)
}
