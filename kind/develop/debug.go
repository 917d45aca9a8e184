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
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

const (
	// DefaultDebugPort is where Delve listens on a node unless another port is asked for.
	DefaultDebugPort = 4000

	// debuggerOnNode is where Debug puts Delve on a node. It stays there, like the node.
	debuggerOnNode = "/usr/local/bin/dlv"
	// debugListening begins the line by which Delve (cmd/dlv, v1.27) says that clients can connect.
	debugListening = "API server listening at: "
	// debugGrace is how long Delve may take to let go of a process.
	debugGrace = 15 * time.Second
)

// debugServer runs Delve with its arguments until it ends by itself, or until nothing comes from standard input any more: a program
// that `docker exec` has started is told of no signal and of no end. With SIGTERM Delve takes its breakpoints out of the process and lets go of it.
// It waits for Delve by its process, as `wait -n` of bash 5.2 misses a job that had ended before another was started.
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

// containerProcess prints the process of the one container that runs of a pod, $1 is its UID.
const containerProcess = `
crictl inspect --output go-template --template '{{.info.pid}}' "$(crictl ps --quiet --state Running --label "io.kubernetes.pod.uid=$1")"
`

// DebugTarget is a process of ours that a debugger can look into.
type DebugTarget struct {
	Target  spec.Target `json:"target"`
	Node    string      `json:"node"`
	Pod     string      `json:"pod"`
	Process int         `json:"process"` // on the node
	Address string      `json:"address"` // host:port, for `dlv connect`

	node *cluster.Node
}

// NotOursError says that a target is no program of ours: there are no sources for a debugger.
type NotOursError struct{ Target spec.Target }

// Error says which targets are.
func (e *NotOursError) Error() string {
	return fmt.Sprintf("target %s is no program of ours: want %s, or %s/<upstream>", e.Target, spec.Extension, spec.Cache)
}

// UsageError marks the error for internal/program: exit code 2.
func (*NotOursError) UsageError() {}

// DebugTarget finds the process of the extension, or of the cache of an upstream, of several the one whose pod comes first by name.
// port is where Delve is to listen on the node. Another target is a
// *NotOursError, one that is not there a *spec.UseError. It needs a testbed that is up: Attach or Up comes first.
func FindTarget(ctx context.Context, t *kind.Testbed, target spec.Target, port int) (*DebugTarget, error) {
	if target.Role != spec.Extension && target.Role != spec.Cache {
		return nil, &NotOursError{target}
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
	node := cluster.Named(found.Cluster, pod.Spec.NodeName)
	if node == nil {
		return nil, fmt.Errorf("pod %s of %s is on no node", pod.Name, target)
	}
	out, err := node.Script(ctx, containerProcess, string(pod.UID))
	if err != nil {
		return nil, fmt.Errorf("find the process of pod %s: %w", pod.Name, err)
	}
	process, err := strconv.Atoi(strings.TrimSpace(out))
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

// Debug lets Delve attach to the process, on its node, and calls ready when clients can connect to the address. The process goes on
// meanwhile, until a client stops it. When ctx ends, Delve lets go of the process, which then goes on without any breakpoint, and
// Debug returns nil; it also ends, with an error, when the process does. What Delve writes goes to log.
//
// debugger is the path of Delve (cmd/dlv) on this machine, static; without it the error is an fs.ErrNotExist. Whoever reaches the
// address can do as the process can: it is on the network of the nodes, which is one of this machine.
func Debug(ctx context.Context, t *kind.Testbed, target *DebugTarget, debugger string, log io.Writer, ready func()) error {
	content, err := os.ReadFile(filepath.Join(t.Root, debugger))
	if err != nil {
		return fmt.Errorf("read the debugger: %w", err)
	}
	if err := target.node.WriteFile(ctx, debuggerOnNode, 0o755, content); err != nil {
		return fmt.Errorf("put the debugger on a node: %w", err)
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	in, stop := io.Pipe()
	defer context.AfterFunc(ctx, func() {
		_ = stop.Close()
		time.AfterFunc(debugGrace, end)
	})()
	code, err := shell.Run(running, target.serve(), shell.Streams{In: in, Out: &listener{log: log, ready: ready}, Err: log})
	switch {
	case running.Err() != nil:
		return fmt.Errorf("the debugger has not let go of %s within %s: process %d of %s", target.Target, debugGrace, target.Process, target.Node)
	case err != nil || ctx.Err() != nil:
		return err
	default:
		return fmt.Errorf("the debugger of %s has ended with exit code %d", target.Target, code)
	}
}

// serve is the command line of Delve for the target.
func (d *DebugTarget) serve() []string {
	return []string{
		"docker", "exec", "--interactive", d.Node, "bash", "-uc", debugServer, "bash", debuggerOnNode, "attach", strconv.Itoa(d.Process),
		"--headless", "--accept-multiclient", "--continue", "--api-version=2", "--listen=" + d.Address,
	}
}

// listener passes on what Delve writes, and calls ready when Delve has said that it listens.
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
