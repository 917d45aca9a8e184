package finding

import (
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/readiness"
)

// units have to be active on every worker.
var units = []string{"containerd.service", "kubelet.service", "gardener-node-agent.service"}

// nodes reports nodes that are not ready and units that do not run.
func nodes(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, node := range b.Nodes {
		if node.Worker() && b.Sleeps() {
			continue
		}
		all = append(all, notReady(b, node)...)
		if !node.UnitsKnown {
			all = append(all, Finding{
				Certain: true, Fix: "testbed up",
				Problem: fmt.Sprintf("The node %s does not say which units run: its container is stopped, or it does not answer.", node.Name),
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
		found.Problem = fmt.Sprintf("The unit %s is not on %s.", name, node.Name)
		found.Details = []string{"gardener-node-agent lays it down when it has applied the OperatingSystemConfig"}
		return []Finding{found}
	}
	found.Problem = fmt.Sprintf("The unit %s of %s does not run: it is %s (%s), result %s.",
		name, node.Name, unit.Active, unit.Sub, unit.Result)
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
		Problem: "The machine " + node.Name + " is no node of the shoot: its kubelet has not registered.",
	}}
}

func disks(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, node := range b.Nodes {
		if len(node.Full) > 0 {
			all = append(all, Finding{
				Certain: true, Problem: "File systems of " + node.Name + " are full.", Details: node.Full, File: node.File(bundle.DiskFile),
			})
		}
	}
	return all
}

// stopped reports processes that do not run although they are there: who asks them waits.
func stopped(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, node := range b.Nodes {
		if len(node.Stopped) > 0 {
			all = append(all, Finding{
				Certain: true, Problem: "Processes on " + node.Name + " are stopped (SIGSTOP), so that they accept connections and never answer.",
				Details: node.Stopped, Fix: "kill -CONT, or restart what they belong to", File: node.File(bundle.ProcessFile),
			})
		}
	}
	return all
}

// firewalls reports tables of rules that one worker has and the others have not: workers are alike.
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
		var alone []string
		for _, table := range node.Tables {
			if have[table] == 1 && len(workers) > 1 {
				alone = append(alone, "table "+table)
			}
		}
		if len(alone) > 0 {
			all = append(all, Finding{
				Problem: node.Name + " has firewall rules that no other worker has.", Details: alone, File: node.File(bundle.FirewallFile),
			})
		}
	}
	return all
}
