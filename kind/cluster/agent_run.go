package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// readAgent returns the program to install on the nodes, or nil if there is none.
func readAgent(config Config) ([]byte, error) {
	if config.Agent == "" {
		return nil, nil
	}
	program, err := os.ReadFile(config.Agent)
	if err != nil {
		return nil, fmt.Errorf("read the agent for the nodes: %w", err)
	}
	return program, nil
}

// installAgent writes the program to the node unless the node has it. A running agent continues.
func (n *Node) installAgent(ctx context.Context, program []byte) error {
	if program == nil {
		return nil
	}
	ctx, cancel := progress.Within(ctx, installTimeout, "the agent is not installed")
	defer cancel()
	sum := sha256.Sum256(program)
	found, err := n.Exec(ctx, "sha256sum", "--", agentPath)
	if err == nil && strings.HasPrefix(found, hex.EncodeToString(sum[:])+" ") {
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
