package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
)

const (
	// agentPath is the path of nodeexec-agent on nodes. The file disappears with the container.
	agentPath = "/kind/registry-cache-testbed-agent"
	// agentTimeout bounds the start of an agent. A `docker exec` takes seconds on a busy machine.
	agentTimeout = 30 * time.Second
	// installTimeout bounds the installation of an agent's program on a node.
	installTimeout = time.Minute
	// agentPause is the time between a failed start of an agent and the next attempt. Without this
	// pause, each command would first wait for another failed start.
	agentPause = 10 * time.Second
)

// agents are the agents (*agent) of the nodes that this process uses, by node name. A process loads
// a cluster several times, and one connection to each node is enough.
var agents sync.Map

// agentOf returns the agent of a node. All callers get the same one.
func agentOf(node string) *agent {
	found, _ := agents.LoadOrStore(node, newAgent(func(ctx context.Context) (*nodeexec.Conn, error) {
		// Without the testbed's mark, Down does not end the agent, which ends with this process.
		return nodeexec.Dial(ctx, dockerExec(node, true, agentPath), command.Unmarked(os.Environ()))
	}))
	a, _ := found.(*agent)
	return a
}

// agent connects to the agent program on one node: for the first command, and again after the
// connection has ended, for example because the node was restarted.
type agent struct {
	dial func(context.Context) (*nodeexec.Conn, error)
	// token has room for one token. Only the caller that put it in may dial and use the fields below.
	token chan struct{}
	conn  *nodeexec.Conn // nil until the first connection
	pause time.Time      // no attempt to connect before this time
}

func newAgent(dial func(context.Context) (*nodeexec.Conn, error)) *agent {
	return &agent{dial: dial, token: make(chan struct{}, 1)}
}

// connection returns the open connection, or a new one. The error wraps nodeexec.ErrNotRun.
func (a *agent) connection(ctx context.Context) (*nodeexec.Conn, error) {
	if a == nil {
		return nil, nodeexec.ErrNotRun
	}
	select {
	case a.token <- struct{}{}:
		defer func() { <-a.token }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", nodeexec.ErrNotRun, context.Cause(ctx))
	}
	if a.connected() {
		return a.conn, nil
	}
	if time.Now().Before(a.pause) {
		return nil, fmt.Errorf("%w: it did not start", nodeexec.ErrNotRun)
	}
	dialCtx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	conn, err := a.dial(dialCtx)
	if err != nil {
		if ctx.Err() == nil {
			a.pause = time.Now().Add(agentPause)
		}
		return nil, fmt.Errorf("%w: %w", nodeexec.ErrNotRun, err)
	}
	a.conn = conn
	return conn, nil
}

func (a *agent) connected() bool {
	if a.conn == nil {
		return false
	}
	select {
	case <-a.conn.Ended():
		return false
	default:
		return true
	}
}

// retry ends the pause after a failed start, so that the next command tries to connect.
func (a *agent) retry() {
	if a == nil {
		return
	}
	a.token <- struct{}{}
	defer func() { <-a.token }()
	a.pause = time.Time{}
}
