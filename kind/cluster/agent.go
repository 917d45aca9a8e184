package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/gardener/pkg/utils"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// agentPath is the path of nodeexec-agent on nodes. The file disappears with the node's
	// container.
	agentPath = "/kind/registry-cache-testbed-agent"
	// agentTimeout bounds the start of an agent. A `docker exec` takes seconds on a busy machine.
	agentTimeout = 30 * time.Second
	// installTimeout bounds the installation of an agent's program on a node.
	installTimeout = time.Minute
)

// agents maps the name of each node that this process uses to its *agent. A process may load a
// cluster several times, but one connection to each node is enough.
var agents sync.Map

// agentOf returns the agent of a node. All callers get the same one.
func agentOf(node string) *agent {
	found, _ := agents.LoadOrStore(node, &agent{node: node, token: make(chan struct{}, 1)})
	a, _ := found.(*agent)
	return a
}

// agent connects to the agent program on one node: for the first command, and again after the
// connection has ended, for example because the node was restarted.
type agent struct {
	node string
	// token has room for one token. Only the caller that put it in may use conn.
	token chan struct{}
	conn  *nodeexec.Conn // nil until the first connection
}

// connection returns the open connection, or a new one.
func (a *agent) connection(ctx context.Context) (*nodeexec.Conn, error) {
	select {
	case a.token <- struct{}{}:
		defer func() { <-a.token }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if a.conn != nil {
		select {
		case <-a.conn.Ended():
		default:
			return a.conn, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	// Without the testbed's mark, Down does not end the agent. The agent ends with this process.
	conn, err := nodeexec.Dial(ctx, dockerExec(a.node, true, agentPath), command.Unmarked(os.Environ()))
	if err == nil {
		a.conn = conn
	}
	return conn, err
}

// installAgent writes the program to the node unless the node has it. A running agent continues.
func (n *Node) installAgent(ctx context.Context, program []byte) error {
	ctx, cancel := progress.Within(ctx, installTimeout, "the agent is not installed")
	defer cancel()
	found, err := n.Exec(ctx, "sha256sum", "--", agentPath)
	if err == nil && strings.HasPrefix(found, utils.ComputeSHA256Hex(program)+" ") {
		return nil
	}
	if err := n.WriteFile(ctx, agentPath, 0o755, program); err != nil {
		return fmt.Errorf("install the agent: %w", err)
	}
	return nil
}

// runByAgent runs a program and returns its standard output. The error is a *command.Error like
// that of a `docker exec`, or wraps nodeexec.ErrNotRun if the program was not started.
func (n *Node) runByAgent(ctx context.Context, stdin []byte, argv []string) (string, error) {
	if n.agent == nil {
		return "", nodeexec.ErrNotRun
	}
	conn, err := n.agent.connection(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", nodeexec.ErrNotRun, err)
	}
	output, err := conn.Run(ctx, argv, stdin)
	if err != nil && !errors.Is(err, nodeexec.ErrNotRun) {
		all := slices.Concat(output.Stdout, output.Stderr)
		err = command.Explain(ctx, &exec.RunError{Command: dockerExec(n.Name(), stdin != nil, argv...), Output: all, Inner: err})
	}
	return string(output.Stdout), err
}

// dockerExec returns the docker command with which kind runs a command on a node.
func dockerExec(node string, stdin bool, argv ...string) []string {
	prefix := []string{"docker", "exec", "--privileged"}
	if stdin {
		prefix = append(prefix, "-i")
	}
	return slices.Concat(prefix, []string{node}, argv)
}
