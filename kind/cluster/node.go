package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
)

// Node is one machine of the cluster: a container that runs systemd, containerd and the kubelet.
// Its methods are safe for concurrent use.
type Node struct {
	kind         nodes.Node
	cluster      *Cluster
	controlPlane bool
	agent        *agent
}

// Name returns the name of the container and of the Node object.
func (n *Node) Name() string { return n.kind.String() }

// IP returns the node's IPv4 address on the Docker network NetworkName.
func (n *Node) IP(ctx context.Context) (string, error) {
	all, err := n.addresses(ctx)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// addresses returns the node's IPv4 address, then its IPv6 address if it has one.
func (n *Node) addresses(ctx context.Context) ([]string, error) {
	out, err := command.Output(ctx, "docker", "inspect", "--format",
		`{{with index .NetworkSettings.Networks "`+NetworkName+`"}}{{.IPAddress}} {{.GlobalIPv6Address}}{{end}}`, n.Name())
	if err != nil {
		return nil, fmt.Errorf("address of %s: %w", n.Name(), err)
	}
	if all := strings.Fields(out); len(all) > 0 && isIPv4(all[0]) {
		return all, nil
	}
	return nil, fmt.Errorf("node %s has no address on the docker network %s: is it running?", n.Name(), NetworkName)
}

// Exec runs a program on the node as root and returns its standard output. If the program fails,
// the error wraps a *command.Error with argv and output.
func (n *Node) Exec(ctx context.Context, argv ...string) (string, error) {
	return n.run(ctx, nil, argv...)
}

// run runs a program through the node's agent, or with `docker exec` if there is no connection to
// the agent. No program runs twice.
func (n *Node) run(ctx context.Context, stdin []byte, argv ...string) (string, error) {
	out, err := n.runByAgent(ctx, stdin, argv)
	if errors.Is(err, nodeexec.ErrNotRun) {
		out, err = n.runByDocker(ctx, stdin, argv)
	}
	if err != nil {
		err = fmt.Errorf("on %s: %w", n.Name(), err)
	}
	return out, err
}

func (n *Node) runByDocker(ctx context.Context, stdin []byte, argv []string) (string, error) {
	cmd := n.kind.CommandContext(ctx, argv[0], argv[1:]...)
	if stdin != nil {
		cmd.SetStdin(bytes.NewReader(stdin))
	}
	return command.Run(ctx, cmd)
}

// Script runs `bash -euo pipefail` on the node with args as $1, $2, ... and returns its output.
func (n *Node) Script(ctx context.Context, script string, args ...string) (string, error) {
	return n.run(ctx, nil, append([]string{"bash", "-euo", "pipefail", "-c", script, "bash"}, args...)...)
}

// ReadFile returns a file's content. The error wraps fs.ErrNotExist if the file does not exist.
func (n *Node) ReadFile(ctx context.Context, path string) ([]byte, error) {
	out, err := n.Exec(ctx, "cat", "--", path)
	if err == nil {
		return []byte(out), nil
	}
	var failed *exec.RunError
	if errors.As(err, &failed) && bytes.Contains(failed.Output, []byte("No such file or directory")) {
		return nil, &fs.PathError{Op: "read on " + n.Name(), Path: path, Err: fs.ErrNotExist}
	}
	return nil, err
}

const writeFile = `
mkdir -p -- "$(dirname -- "$1")"
temp=$(mktemp -- "$1.XXXXXX")
trap 'rm -f -- "$temp"' EXIT
cat >"$temp"
chmod -- "$2" "$temp"
sync -- "$temp"
mv -fT -- "$temp" "$1"
`

// WriteFile replaces a file atomically, so that readers see the old or the new content even after a
// crash. Missing parent directories are created.
func (n *Node) WriteFile(ctx context.Context, path string, mode fs.FileMode, data []byte) error {
	_, err := n.run(ctx, data,
		"bash", "-euo", "pipefail", "-c", writeFile, "bash", path, fmt.Sprintf("%04o", mode.Perm()))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// LoadImage imports an archive, in the format of `docker save`, into the node's containerd.
func (n *Node) LoadImage(ctx context.Context, archive io.Reader) error {
	cmd := n.kind.CommandContext(ctx, "ctr", "--namespace=k8s.io", "images", "import", "--all-platforms", "--digests", "--snapshotter=overlayfs", "-")
	if _, err := command.Run(ctx, cmd.SetStdin(archive)); err != nil {
		return fmt.Errorf("load an image into %s: %w", n.Name(), err)
	}
	return nil
}
