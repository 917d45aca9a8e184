package finding

import (
	"fmt"
	"path/filepath"
	"slices"

	kindcluster "github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// units must be active on every worker; the first two of them also on control-plane nodes.
var units = []string{"containerd.service", "kubelet.service", "gardener-node-agent.service"}

func nodes(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Nodes {
		if node.Worker() && b.Hibernated() {
			continue
		}
		all = append(all, notReady(b, node)...)
		if !node.UnitsKnown {
			all = append(all, problem("", "testbed up",
				"The unit states of the node %s are unknown: its container is stopped or does not answer.", node.Name))
			continue
		}
		wanted := slices.Clone(units)
		if !node.Worker() {
			wanted = units[:2]
		} else if len(b.Cached()) > 0 {
			wanted = append(wanted, bundle.ScriptUnit)
		}
		for _, name := range wanted {
			if node.Units[name].Active != "active" {
				all = append(all, inactive(node, name))
			}
		}
	}
	return all
}

func inactive(node bundle.Node, name string) Finding {
	unit, file := node.Units[name], node.File(bundle.UnitsFile)
	if unit.Load == "not-found" || unit.Load == "" {
		return problem(file, "see the journal of gardener-node-agent, which creates it from the OperatingSystemConfig",
			"The unit %s does not exist on %s.", name, node.Name)
	}
	found := problem(file, "see the journal of the unit",
		"The unit %s on %s is %s (%s), result %s.", name, node.Name, unit.Active, unit.Sub, unit.Result)
	if unit.Restarts > 0 {
		found = found.with(fmt.Sprintf("systemd has restarted it %d times", unit.Restarts))
	}
	return found
}

func notReady(b *bundle.Bundle, node bundle.Node) []Finding {
	for _, cluster := range []bundle.Cluster{b.Shoot, b.Seed} {
		for _, object := range cluster.Nodes {
			if object.Name != node.Name {
				continue
			}
			ready, why := kindcluster.NodeReady(&object)
			if ready {
				return nil
			}
			found := problem(cluster.ObjectsFile("nodes"), "", "The node %s is not ready.", node.Name)
			if why != "" {
				found = found.with(why)
			}
			return []Finding{found}
		}
	}
	if !b.Shoot.Known || !node.Worker() {
		return nil
	}
	return []Finding{problem(b.Shoot.ObjectsFile("nodes"), "see the journals of kubelet and gardener-node-agent",
		"The machine %s has no Node in the shoot: its kubelet has not registered.", node.Name)}
}

// folders reports workers whose containerd does not read the hosts.toml files. Such a containerd
// uses no cache, and logs nothing about that.
func folders(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Workers() {
		if node.Config == nil || len(b.Cached()) == 0 {
			continue
		}
		if why, certain := folderProblem(*node.Config); why != "" {
			found := problem(node.File(bundle.ConfigFile), "set config_path to "+nodeconfig.CertsDir+" alone and restart containerd",
				"containerd on %s %s.", node.Name, why).
				with(fmt.Sprintf("config_path is %q in the file; containerd read the file when it started", node.Config.Path))
			found.Certain = certain
			all = append(all, found)
		}
	}
	return all
}

// folderProblem returns why containerd does not read the hosts.toml files; "" if it reads them.
func folderProblem(config bundle.Config) (why string, certain bool) {
	all := filepath.SplitList(config.Path)
	switch i := slices.IndexFunc(all, func(folder string) bool { return filepath.Clean(folder) == nodeconfig.CertsDir }); {
	case len(all) == 0:
		return "uses no cache: it has no config_path", true
	case i < 0:
		return "uses no cache: its config_path does not have " + nodeconfig.CertsDir + ", where the hosts.toml files are", true
	case len(all) > 1 && config.Transfer:
		return "uses no cache: its transfer service reads config_path as a single folder (containerd#12415)", true
	case i > 0:
		return "can miss caches: its config_path has another folder before " + nodeconfig.CertsDir + ", whose files win", false
	default:
		return "", false
	}
}

func disks(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Nodes {
		if len(node.Full) > 0 {
			all = append(all, problem(node.File(bundle.DiskFile), "free some space: the kubelet evicts pods",
				"File systems on %s are full.", node.Name).with(node.Full...))
		}
	}
	return all
}

// stopped reports processes that were stopped by SIGSTOP or a debugger. Their clients wait.
func stopped(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Nodes {
		if len(node.Stopped) > 0 {
			all = append(all, problem(node.File(bundle.ProcessFile), "continue them with kill -CONT, or restart their pod or unit",
				"Stopped processes on %s accept connections but never answer.", node.Name).with(node.Stopped...))
		}
	}
	return all
}
