package diagnostics

import (
	"context"
	"path"
)

// Executor is a node that commands can be run on, for example a cluster.Node.
type Executor interface {
	Name() string
	// Exec returns the standard output, also when the command failed.
	Exec(ctx context.Context, argv ...string) (string, error)
}

// Node returns the evidence on one node: the journals of the units that matter for pulls, their states, the registry
// configuration of containerd, and what runs.
func Node(n Executor) Source { return node{n} }

type node struct{ Executor }

func (n node) Name() string { return path.Join("node", n.Executor.Name()) }

// units are the systemd units between the API server and a pull.
var units = []string{"containerd", "kubelet", "gardener-node-agent", "gardener-node-init", "configure-containerd-registries"}

type nodeCommand struct {
	file string
	argv []string
}

// nodeCommands never fail on a node where a unit or a file is missing: those are findings.
func nodeCommands() []nodeCommand {
	const (
		unitProperties = "Id,LoadState,UnitFileState,ActiveState,SubState,Result,ExecMainStatus,NRestarts,MainPID,ActiveEnterTimestamp"

		lines  = "20000" // enough for every scenario, and a few MiB at most
		certsd = `ls -lR --time-style=full-iso /etc/containerd/certs.d; find /etc/containerd/certs.d -type f -name '*.toml' -exec tail -v -n +1 {} +`
		cat    = `systemctl cat --no-pager configure-containerd-registries.service 2>&1 || true`
	)
	show := []string{"systemctl", "show", "--no-pager", "--property=" + unitProperties}
	commands := []nodeCommand{
		{"units.txt", append(show, units...)},
		{"failed-units.txt", []string{"systemctl", "list-units", "--no-pager", "--all", "--state=failed"}},
		{"configure-containerd-registries.service", []string{"sh", "-c", cat}},
		{"certs.d.txt", []string{"sh", "-c", certsd}},
		{"containerd-config.toml", []string{"containerd", "config", "dump"}},
		{"containers.txt", []string{"crictl", "ps", "--all"}},
		{"images.txt", []string{"crictl", "images", "--digests"}},
		{"disk.txt", []string{"df", "-h"}},
	}
	for _, unit := range units {
		argv := []string{"journalctl", "--no-pager", "--output=short-iso-precise", "--lines=" + lines, "--unit=" + unit}
		commands = append(commands, nodeCommand{"journal/" + unit + ".log", argv})
	}
	return commands
}

func (n node) Collect(ctx context.Context, into *Folder) {
	for _, command := range nodeCommands() {
		output, err := n.Exec(ctx, command.argv...)
		into.Fail(command.file, err)
		if err == nil || output != "" {
			into.Write(command.file, []byte(output))
		}
	}
}
