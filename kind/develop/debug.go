package develop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

const (
	// DefaultDebugPort is the default port of Delve on a node.
	DefaultDebugPort = 4000

	// debuggerOnNode is the path of Delve on a node. Debug does not remove it.
	debuggerOnNode = "/usr/local/bin/dlv"
	// debugListening is the prefix of the line that Delve (cmd/dlv, v1.27) prints when it listens.
	debugListening = "API server listening at: "
	debugGrace     = 15 * time.Second // bounds how long Delve takes to detach from a process
)

// debugServer runs Delve until Delve exits or standard input ends, since `docker exec` does not
// forward signals. On SIGTERM Delve removes its breakpoints and detaches. The script waits for a
// PID, since `wait -n` of bash 5.2 misses a job that ends before the next job starts.
const debugServer = `
"$@" &
server=$!
{
  while read -r; do :; done
  kill "$server" 2>/dev/null
} <&0 >/dev/null &
reader=$!
code=0
wait "$server" || code=$?
kill "$reader" 2>/dev/null || true
exit "$code"
`

// containerProcess prints the PID of the running container of the pod with the UID $1.
const containerProcess = `
crictl inspect --output go-template --template '{{.info.pid}}' "$(crictl ps --quiet --state Running --label "io.kubernetes.pod.uid=$1")"
`

// DebugTarget is a process of the extension or of a cache.
type DebugTarget struct {
	Target  spec.Target `json:"target"`
	Node    string      `json:"node"`
	Pod     string      `json:"pod"`
	Process int         `json:"process"` // on the node
	Address string      `json:"address"` // host:port, for `dlv connect`

	node *cluster.Node
}

// NotDebuggableError is the error for a target that is not built from this repository.
type NotDebuggableError struct{ Target spec.Target }

func (e *NotDebuggableError) Error() string {
	return fmt.Sprintf("target %s cannot be debugged: use %s or %s/<upstream>", e.Target, spec.Extension, spec.Cache)
}

// UsageError marks the error for internal/program: exit code 2.
func (*NotDebuggableError) UsageError() {}

// FindTarget finds the process of the extension or of a cache, in the first pod by name. Delve will
// listen on the given port of the pod's node. The error is a *NotDebuggableError for any other
// target, and a *spec.UsageError if there is no such target. The testbed must be attached.
func FindTarget(ctx context.Context, t *kind.Testbed, target spec.Target, port int) (*DebugTarget, error) {
	if target.Role != spec.Extension && target.Role != spec.Cache {
		return nil, &NotDebuggableError{target}
	}
	target, err := fault.ResolveTarget(ctx, t, target)
	if err != nil {
		return nil, err
	}
	found, err := fault.PodsOf(ctx, t, target)
	if err != nil {
		return nil, err
	}
	pod, err := found.First()
	if err != nil {
		return nil, err
	}
	node := found.Cluster.Node(pod.Spec.NodeName)
	if node == nil {
		return nil, fmt.Errorf("pod %s of %s is not scheduled on a node of the testbed", pod.Name, target)
	}
	out, err := node.Script(ctx, containerProcess, string(pod.UID))
	process := 0
	if err == nil {
		process, err = strconv.Atoi(strings.TrimSpace(out))
	}
	if err != nil {
		return nil, fmt.Errorf("find the process of pod %s: %w", pod.Name, err)
	}
	ip, err := node.IP(ctx)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(ip, strconv.Itoa(port))
	return &DebugTarget{Target: target, Node: node.Name(), Pod: pod.Name, Process: process, Address: address, node: node}, nil
}

// Debug attaches Delve to the process, on its node, and calls the function ready when clients can
// connect to the address. When ctx ends, Delve removes its breakpoints and detaches, and Debug
// returns nil. If the process ends first, Debug returns an error. Delve's output goes to log.
//
// The argument debugger is the path of a static Delve (cmd/dlv) below the root of the repository.
// If the file is missing, the error is an fs.ErrNotExist. Delve has no authentication: a client on
// the network of the nodes, which is local to this machine, has the permissions of the process.
func Debug(ctx context.Context, t *kind.Testbed, target *DebugTarget, debugger string, log io.Writer, ready func()) error {
	content, err := os.ReadFile(filepath.Join(t.Root, debugger))
	if err != nil {
		return fmt.Errorf("read the debugger: %w", err)
	}
	if err := target.node.WriteFile(ctx, debuggerOnNode, 0o755, content); err != nil {
		return fmt.Errorf("copy the debugger to the node: %w", err)
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	in, stop := io.Pipe()
	defer context.AfterFunc(ctx, func() {
		_ = stop.Close()
		time.AfterFunc(debugGrace, end)
	})()
	code, err := Run(running, target.serve(), Streams{In: in, Out: &listener{log: log, ready: ready}, Err: log})
	switch {
	case running.Err() != nil:
		return fmt.Errorf("the debugger did not detach from %s within %s: process %d of %s",
			target.Target, debugGrace, target.Process, target.Node)
	case err != nil || ctx.Err() != nil:
		return err
	default:
		return fmt.Errorf("the debugger of %s ended with exit code %d", target.Target, code)
	}
}

func (d *DebugTarget) serve() []string {
	return []string{
		"docker", "exec", "--interactive", d.Node, "bash", "-uc", debugServer, "bash", debuggerOnNode, "attach", strconv.Itoa(d.Process),
		"--headless", "--accept-multiclient", "--continue", "--api-version=2", "--listen=" + d.Address,
	}
}

// listener copies the output of Delve to log, and calls the function ready when Delve listens.
type listener struct {
	log   io.Writer
	ready func()
	seen  []byte
}

func (l *listener) Write(text []byte) (int, error) {
	if l.ready != nil {
		if l.seen = append(l.seen, text...); bytes.Contains(l.seen, []byte(debugListening)) {
			l.ready()
			l.ready, l.seen = nil, nil
		}
	}
	return l.log.Write(text)
}
