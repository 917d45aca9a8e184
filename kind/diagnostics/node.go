package diagnostics

import (
	"context"
	"path"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Executor runs commands on a node, for example a cluster.Node.
type Executor interface {
	Name() string
	// Exec returns the standard output, even if the command fails.
	Exec(ctx context.Context, argv ...string) (string, error)
}

// probe sends GET /v2/ from the node to every host in every hosts.toml. In the access logs of the
// upstreams, the user agent distinguishes probes from pulls. Certificates are not checked.
const probe = `
for file in /etc/containerd/certs.d/*/hosts.toml; do
  [ -e "$file" ] || continue
  sed -n 's/^\[host\."\(.*\)"\].*/\1/p; s/^server *= *"\(.*\)".*/\1/p' "$file" | while read -r url; do
    printf '%s %s ' "$(basename "$(dirname "$file")")" "$url"
    curl --silent --insecure --output /dev/null --user-agent registry-cache-testbed/diagnostics --connect-timeout 2 --max-time 5 \
      --write-out '%{http_code} %{time_total} %{errormsg}\n' "$url/v2/" || true
  done
done`

var units = []string{"containerd", "kubelet", "gardener-node-agent", "gardener-node-init", "configure-containerd-registries"}

// nodeFiles lists the files of a node, each with the command that prints its content. A missing
// unit does not make a command fail: package finding reports it.
var nodeFiles = []struct {
	name string
	argv []string
}{
	{bundle.UnitsFile, slices.Concat([]string{"systemctl", "show", "--no-pager", "--property=" +
		"Id,LoadState,UnitFileState,ActiveState,SubState,Result,ExecMainStatus,NRestarts,MainPID,ActiveEnterTimestamp"}, units)},
	{"failed-units.txt", []string{"systemctl", "list-units", "--no-pager", "--all", "--state=failed"}},
	{bundle.ScriptUnit, shell(`systemctl cat --no-pager configure-containerd-registries.service 2>&1 || true`)},
	{bundle.CertsFile, shell(`d=/etc/containerd/certs.d; ls -lR --time-style=full-iso $d; find $d -type f -name '*.toml' -exec tail -v -n +1 {} +`)},
	{bundle.CachesFile, nodeconfig.StateCommand()},
	{bundle.ConfigFile, []string{"containerd", "config", "dump"}},
	{"containers.txt", []string{"crictl", "ps", "--all"}},
	{"images.txt", []string{"crictl", "images", "--digests"}},
	{bundle.DiskFile, []string{"df", "-h"}},
	{bundle.ProbeFile, shell(probe)},
	{bundle.RouteFile, shell(`ip -brief address; echo; ip route; echo; ip -6 route`)},
	{bundle.FirewallFile, shell(`nft list ruleset 2>&1 || iptables-save 2>&1 || true`)},
	{bundle.ProcessFile, []string{"ps", "-ww", "-eo", "pid,stat,etime,args"}},
}

func shell(script string) []string { return []string{"sh", "-c", script} }

// Node returns a source for one node: the files in nodeFiles, and the newest 20,000 lines of each
// unit's journal. They cover every scenario, and have a few MiB at most.
func Node(n Executor) Source {
	return Source{path.Join(bundle.NodeFolder, n.Name()), func(ctx context.Context, into *Folder) {
		run := func(file string, argv ...string) {
			output, err := n.Exec(ctx, argv...)
			into.store(file, []byte(output), err)
		}
		for _, file := range nodeFiles {
			run(file.name, file.argv...)
		}
		for _, unit := range units {
			run("journal/"+unit+".log", "journalctl", "--no-pager", "--output=short-iso-precise", "--lines=20000", "--unit="+unit)
		}
	}}
}
