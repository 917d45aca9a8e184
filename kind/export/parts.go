package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/status"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

const (
	indexFile  = "index.md"
	statusFile = "status.txt"
)

// contents describes the files of an export for the index.
const contents = `| file | content |
| --- | --- |
| status.txt, versions.txt | the output of testbed status; versions of the sources and images |
| faults.json, gardenlet.log | active faults; the log of gardenlet's flows |
| upstream/HOST | access.jsonl contains a record of each request with its asker (cache, node, harness); messages.log |
| seed, shoot | docker-info.txt and folders of kind |
| .../objects | Kubernetes objects, events.txt, and secrets.txt with the keys of Secrets, without data |
| | with a garden: its objects in garden.yaml, and apiservices.yaml, which shows whether its APIs answer |
| .../NODE | journal.log, containerd.log, kubelet.log; pods contains the logs of containers, including previous runs |
| .../NODE/state | certs.d.txt contains all files in certs.d; script.txt contains the script's state and its age |
| | units.txt, containerd.toml, containers.txt, disk.txt, network.txt, firewall.txt, processes.txt |
`

// index returns a page in Markdown. Its readers may know neither the testbed nor what was changed.
func index(at time.Time, why, status string, missing []string) string {
	var page strings.Builder
	fmt.Fprintf(&page, "# Export of a testbed\n\nCollected at %s. Times are UTC.\n", at.UTC().Format(time.RFC3339))
	section := func(title, text string) {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&page, "\n## %s\n\n```text\n%s\n```\n", title, strings.ReplaceAll(text, "```", "'''"))
		}
	}
	section("Why", why)
	section("Not collected", strings.Join(missing, "\n"))
	section("Status", status)
	fmt.Fprintf(&page, "\n## Files\n\n%s", contents)
	return page.String()
}

// parts returns the functions that collect the existing parts of a testbed.
func parts(t *kind.Testbed) []part {
	all := []part{
		file("versions.txt", func(ctx context.Context) (string, error) { return versions(ctx, t), nil }),
		file("gardenlet.log", func(context.Context) (string, error) {
			content, err := os.ReadFile(t.State.GardenletLog())
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return string(content), err
		}),
		file(statusFile, func(ctx context.Context) (string, error) {
			var text strings.Builder
			seen, err := status.OfTestbed(ctx, t)
			return text.String(), errors.Join(err, seen.Write(&text))
		}),
		logs("seed", t.SeedName()),
		logs("shoot", t.ShootName()),
	}
	for name, c := range map[string]*cluster.Cluster{"seed": t.Seed, "shoot": t.Shoot} {
		if c == nil {
			continue
		}
		all = append(all, run(c.ControlPlane(), path.Join(name, "objects"), objects(name, t.Config.Garden)))
		for _, node := range c.Nodes() {
			all = append(all, run(node, path.Join(name, node.Name(), "state"), nodeState(t.Extension.Reporter)))
		}
	}
	if t.Shoot != nil {
		all = append(all, file("faults.json", func(ctx context.Context) (string, error) {
			active, err := fault.List(ctx, t)
			if err != nil {
				return "", err // do not store an incomplete list: it would look complete
			}
			content, err := spec.Encode(active)
			return string(content), err
		}))
	}
	for _, registry := range t.Upstreams.All() {
		all = append(all, access(registry))
	}
	return all
}

// file returns a part that stores one file.
func file(name string, content func(context.Context) (string, error)) part {
	return func(ctx context.Context, into *folder) {
		text, err := content(ctx)
		into.add(name, text, err)
	}
}

// logs returns a part that collects what `kind export logs` writes. kind takes no context: after a
// timeout, the export contains the files that kind has written so far.
func logs(name, cluster string) part {
	return func(ctx context.Context, into *folder) {
		done := make(chan error, 1)
		go func() { done <- collectLogs(cluster, filepath.Join(into.dir, name)) }()
		select {
		case err := <-done:
			into.fail(name, err)
		case <-ctx.Done():
			into.fail(name, fmt.Errorf("kind's logs: %w", context.Cause(ctx)))
		}
	}
}

var collectLogs = cluster.CollectLogs

// access returns a part that stores the output of an upstream's container, whose standard output is
// the access log.
func access(registry *upstream.Registry) part {
	return func(ctx context.Context, into *folder) {
		var records, messages strings.Builder
		err := registry.Output(ctx, &records, &messages)
		into.add(path.Join("upstream", registry.Host(), "access.jsonl"), records.String(), err)
		into.add(path.Join("upstream", registry.Host(), "messages.log"), messages.String(), nil)
	}
}

// node is a machine on which programs can run, for example a *cluster.Node.
type node interface {
	// Exec returns the standard output, even if the program fails.
	Exec(ctx context.Context, argv ...string) (string, error)
}

// program is a file with the output of a program on a node.
type program struct {
	file string
	argv []string
}

func run(on node, name string, programs []program) part {
	return func(ctx context.Context, into *folder) {
		for _, p := range programs {
			output, err := on.Exec(ctx, p.argv...)
			into.add(path.Join(name, p.file), output, err)
		}
	}
}

// nodeState returns the programs that print the state of a node. The reporter may be nil.
func nodeState(reporter kind.Reporter) []program {
	var all []program
	own := ""
	if reporter != nil {
		own = strings.Join(reporter.Units(), " ")
		for name, argv := range reporter.Files() {
			all = append(all, program{name, argv})
		}
	}
	return append(all, []program{
		{"certs.d.txt", sh(`d=/etc/containerd/certs.d; ls -lR --time-style=full-iso $d; find $d -type f -name '*.toml' -exec tail -v -n +1 {} +`)},
		{"units.txt", sh(`systemctl cat --no-pager ` + own + `; systemctl status --no-pager --all --lines=0 ` + own +
			` containerd kubelet gardener-node-agent; systemctl list-units --no-pager --all --state=failed; true`)},
		{"containerd.toml", []string{"containerd", "config", "dump"}},
		{"containers.txt", []string{"crictl", "ps", "--all"}},
		{"disk.txt", []string{"df", "-h"}},
		{"network.txt", sh(`ip -brief address; echo; ip route; echo; ip -6 route`)},
		{"firewall.txt", sh(`nft list ruleset 2>&1 || iptables-save 2>&1 || true`)},
		{"processes.txt", []string{"ps", "-ww", "-eo", "pid,stat,etime,args"}},
	}...)
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// secretsTemplate prints the keys of Secrets and the sizes of their values in base64, but no value.
const secretsTemplate = `{{range .items}}{{.metadata.namespace}}/{{.metadata.name}} {{.type}} {{.metadata.creationTimestamp}}` +
	`{{if .immutable}} immutable{{end}}{{with .metadata.labels}} {{.}}{{end}}` +
	`{{range $key, $value := .data}} {{$key}}={{len $value}}{{end}}{{"\n"}}{{end}}`

// objects returns the programs that print the objects of the cluster "seed" or "shoot". Only the
// seed serves Gardener's resources, and those of a garden only if the testbed has one.
func objects(cluster string, garden bool) []program {
	get := func(file, resources string, more ...string) program {
		return program{file, append([]string{
			"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "--request-timeout=15s", "get", resources, "--all-namespaces",
		}, more...)}
	}
	all := []program{
		get("workloads.yaml", "pods,deployments,statefulsets,daemonsets,services,endpointslices,networkpolicies", "--output=yaml"),
		get("cluster.yaml", "namespaces,nodes,persistentvolumes,persistentvolumeclaims,storageclasses,configmaps,"+
			"mutatingwebhookconfigurations,validatingwebhookconfigurations", "--output=yaml"),
		get("secrets.txt", "secrets", "--output=go-template="+secretsTemplate),
		get("events.txt", "events", "--sort-by=.metadata.creationTimestamp", "--output=custom-columns=CREATED:.metadata.creationTimestamp,"+
			"LAST:.lastTimestamp,COUNT:.count,TYPE:.type,REASON:.reason,NAMESPACE:.metadata.namespace,KIND:.involvedObject.kind,"+
			"NAME:.involvedObject.name,MESSAGE:.message"),
	}
	if cluster == "seed" {
		all = append(all, get("gardener.yaml", "extensions.extensions.gardener.cloud,operatingsystemconfigs.extensions.gardener.cloud,"+
			"workers.extensions.gardener.cloud,clusters.extensions.gardener.cloud,managedresources.resources.gardener.cloud", "--output=yaml"))
		if garden {
			all = append(all,
				get("garden.yaml", "shoots.core.gardener.cloud,seeds.core.gardener.cloud,controllerinstallations.core.gardener.cloud,"+
					"controllerregistrations.core.gardener.cloud,controllerdeployments.core.gardener.cloud", "--output=yaml"),
				// Apart, because kubectl prints nothing if it does not find one of the resources.
				get("apiservices.yaml", "apiservices.apiregistration.k8s.io,leases.coordination.k8s.io", "--output=yaml"))
		}
	}
	return all
}

// versions returns one version per line. The status contains the versions of the nodes.
func versions(ctx context.Context, t *kind.Testbed) string {
	var lines []string
	if out, err := command.Output(ctx, "git", "-C", t.Root, "describe", "--always", "--dirty", "--abbrev=12"); err == nil {
		lines = append(lines, "sources "+strings.TrimSpace(out)) // git fails outside a repository
	}
	lines = append(lines, "gardener "+gardener.Version)
	if t.NodeImage != "" {
		lines = append(lines, "node image "+t.NodeImage, "node image of the shoot "+t.ShootImage)
	}
	if t.Engine != nil {
		lines = append(lines, "docker "+t.Engine.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Images)) {
		lines = append(lines, t.Images[name].Ref)
	}
	return strings.Join(lines, "\n") + "\n"
}
