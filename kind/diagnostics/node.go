package diagnostics

import (
	"context"
	"path"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// Executor runs commands on a node, for example a cluster.Node.
type Executor interface {
	Name() string
	// Exec returns the standard output, also if the command fails.
	Exec(ctx context.Context, argv ...string) (string, error)
}

// Node returns a source for one node: the states and journals of the units that matter for pulls,
// the registry configuration of containerd, and what runs.
func Node(n Executor) Source { return node{n} }

type node struct{ Executor }

func (n node) Name() string { return path.Join(bundle.NodeFolder, n.Executor.Name()) }

// units are the systemd units that are involved in a pull.
var units = []string{"containerd", "kubelet", "gardener-node-agent", "gardener-node-init", "configure-containerd-registries"}

// probe sends containerd's first request to every host of every hosts.toml, from the node and with
// the same connect timeout. The user agent tells probes from pulls in the access logs of the
// upstreams. Certificates are not checked.
const probe = `
for file in /etc/containerd/certs.d/*/hosts.toml; do
  [ -e "$file" ] || continue
  sed -n 's/^\[host\."\(.*\)"\].*/\1/p; s/^server *= *"\(.*\)".*/\1/p' "$file" | while read -r url; do
    printf '%s %s ' "$(basename "$(dirname "$file")")" "$url"
    curl --silent --insecure --output /dev/null --user-agent registry-cache-testbed/diagnostics --connect-timeout 2 --max-time 5 \
      --write-out '%{http_code} %{time_total} %{errormsg}\n' "$url/v2/" || true
  done
done`

type nodeCommand struct {
	file string
	argv []string
}

// nodeCommands do not fail if a unit or a file is missing: that is a finding.
func nodeCommands() []nodeCommand {
	const (
		unitProperties = "Id,LoadState,UnitFileState,ActiveState,SubState,Result,ExecMainStatus,NRestarts,MainPID,ActiveEnterTimestamp"

		lines     = "20000" // enough for every scenario, a few MiB at most
		certsd    = `d=/etc/containerd/certs.d; ls -lR --time-style=full-iso $d; find $d -type f -name '*.toml' -exec tail -v -n +1 {} +`
		cat       = `systemctl cat --no-pager configure-containerd-registries.service 2>&1 || true`
		addresses = `ip -brief address; echo; ip route; echo; ip -6 route`
		firewall  = `nft list ruleset 2>&1 || iptables-save 2>&1 || true`
	)
	show := []string{"systemctl", "show", "--no-pager", "--property=" + unitProperties}
	commands := []nodeCommand{
		{bundle.UnitsFile, append(show, units...)},
		{"failed-units.txt", []string{"systemctl", "list-units", "--no-pager", "--all", "--state=failed"}},
		{bundle.ScriptUnit, []string{"sh", "-c", cat}},
		{bundle.CertsFile, []string{"sh", "-c", certsd}},
		{bundle.ConfigFile, []string{"containerd", "config", "dump"}},
		{"containers.txt", []string{"crictl", "ps", "--all"}},
		{"images.txt", []string{"crictl", "images", "--digests"}},
		{bundle.DiskFile, []string{"df", "-h"}},
		{bundle.ProbeFile, []string{"sh", "-c", probe}},
		{bundle.RouteFile, []string{"sh", "-c", addresses}},
		{bundle.FirewallFile, []string{"sh", "-c", firewall}},
		{bundle.ProcessFile, []string{"ps", "-ww", "-eo", "pid,stat,etime,args"}},
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
