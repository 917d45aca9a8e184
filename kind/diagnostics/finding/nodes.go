package finding

import (
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/readiness"
)

// units must be active on every worker; the first two also on control-plane nodes.
var units = []string{"containerd.service", "kubelet.service", "gardener-node-agent.service"}

// nodes reports nodes that are not ready and units that are not active.
func nodes(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, node := range b.Nodes {
		if node.Worker() && b.Hibernated() {
			continue
		}
		all = append(all, notReady(b, node)...)
		if !node.UnitsKnown {
			all = append(all, Finding{
				Certain: true, Fix: "testbed up",
				Problem: fmt.Sprintf("The unit states of the node %s are unknown: its container is stopped or does not answer.", node.Name),
			})
			continue
		}
		wanted := units
		if !node.Worker() {
			wanted = units[:2]
		}
		for _, name := range wanted {
			all = append(all, inactive(node, name)...)
		}
		if node.Worker() && len(b.Cached()) > 0 {
			all = append(all, inactive(node, bundle.ScriptUnit)...)
		}
	}
	return all
}

func inactive(node bundle.Node, name string) []Finding {
	unit := node.Units[name]
	if unit.Active == "active" {
		return nil
	}
	found := Finding{Certain: true, File: node.File(bundle.UnitsFile)}
	if unit.Load == "not-found" || unit.Load == "" {
		found.Problem = fmt.Sprintf("The unit %s does not exist on %s.", name, node.Name)
		found.Fix = "see the journal of gardener-node-agent, which creates it from the OperatingSystemConfig"
		return []Finding{found}
	}
	found.Problem = fmt.Sprintf("The unit %s on %s is %s (%s), result %s.", name, node.Name, unit.Active, unit.Sub, unit.Result)
	found.Fix = "see the journal of the unit"
	if unit.Restarts > 0 {
		found.Details = []string{fmt.Sprintf("systemd has restarted it %d times", unit.Restarts)}
	}
	return []Finding{found}
}

func notReady(b *bundle.Bundle, node bundle.Node) []Finding {
	for _, cluster := range []bundle.Cluster{b.Shoot, b.Seed} {
		for _, object := range cluster.Nodes {
			if object.Name != node.Name {
				continue
			}
			ready, why := readiness.Node(&object)
			if ready {
				return nil
			}
			found := Finding{Certain: true, Problem: "The node " + node.Name + " is not ready.", File: cluster.ObjectsFile("nodes")}
			if why != "" {
				found.Details = []string{why}
			}
			return []Finding{found}
		}
	}
	if !b.Shoot.Known || !node.Worker() {
		return nil
	}
	return []Finding{{
		Certain: true, File: b.Shoot.ObjectsFile("nodes"),
		Problem: "The machine " + node.Name + " has no Node in the shoot: its kubelet has not registered.",
		Fix:     "see the journals of kubelet and gardener-node-agent",
	}}
}

func disks(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, node := range b.Nodes {
		if len(node.Full) > 0 {
			all = append(all, Finding{
				Certain: true, Problem: "File systems on " + node.Name + " are full.", Details: node.Full,
				Fix: "free some space: the kubelet evicts pods", File: node.File(bundle.DiskFile),
			})
		}
	}
	return all
}

// stopped reports processes that SIGSTOP or a debugger stopped. Their clients wait.
func stopped(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, node := range b.Nodes {
		if len(node.Stopped) > 0 {
			all = append(all, Finding{
				Certain: true, Problem: "Stopped processes on " + node.Name + " accept connections but never answer.",
				Details: node.Stopped, Fix: "continue them with kill -CONT, or restart their pod or unit", File: node.File(bundle.ProcessFile),
			})
		}
	}
	return all
}

// firewalls reports firewall tables that only one worker has, since workers should not differ.
func firewalls(b *bundle.Bundle) []Finding {
	have := map[string]int{}
	workers := b.Workers()
	for _, node := range workers {
		for _, table := range node.Tables {
			have[table]++
		}
	}
	var all []Finding
	for _, node := range workers {
		var extra []string
		for _, table := range node.Tables {
			if have[table] == 1 && len(workers) > 1 {
				extra = append(extra, "table "+table)
			}
		}
		if len(extra) > 0 {
			all = append(all, Finding{
				Problem: node.Name + " has firewall rules that no other worker has.", Details: extra, File: node.File(bundle.FirewallFile),
			})
		}
	}
	return all
}
