package status

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Node is one node of a cluster.
type Node struct {
	Name string `json:"name"`
	// Registered reports whether the Node object exists, Ready whether its condition Ready is true.
	Registered bool `json:"registered"`
	Ready      bool `json:"ready"`
	// Units are the systemd units that configure the node and pull images. Only Shoot.Nodes have them.
	Units []Unit `json:"units,omitempty"`
	// Mirrors are the effective hosts.toml files, ordered by upstream.
	Mirrors []nodeconfig.HostConfig `json:"mirrors,omitempty"`
	// Caches are what the script says of its upstreams.
	Caches  []nodeconfig.State `json:"caches,omitempty"`
	Problem string             `json:"problem,omitempty"`
}

// Unit is the state of a systemd unit, in the words of systemd.
type Unit struct {
	Name     string `json:"name"`
	Load     string `json:"load"` // "not-found" for a missing unit
	Active   string `json:"active"`
	Sub      string `json:"sub"`
	Result   string `json:"result,omitempty"`
	Restarts string `json:"restarts,omitempty"`
}

// readNodes returns the status of all nodes of a cluster, with the named systemd units, and the
// Node objects. If the API server fails, the nodes' own reports are returned with the error.
func readNodes(ctx context.Context, of *cluster.Cluster, units ...string) ([]Node, []corev1.Node, error) {
	machines := of.Nodes()
	nodes := make([]Node, len(machines))
	var group sync.WaitGroup
	for i, machine := range machines {
		nodes[i].Name = machine.Name()
		group.Go(func() {
			if err := nodes[i].read(ctx, machine, units); err != nil {
				nodes[i].Problem = firstLine(err)
			}
		})
	}
	group.Wait()
	api, err := client.New(of.RESTConfig(), client.Options{})
	if err != nil {
		return nodes, nil, err
	}
	objects := &corev1.NodeList{}
	if err := api.List(ctx, objects); err != nil {
		return nodes, nil, fmt.Errorf("list the nodes: %w", err)
	}
	for i := range nodes {
		for _, object := range objects.Items {
			if object.Name == nodes[i].Name {
				nodes[i].Registered = true
				nodes[i].Ready, _ = cluster.NodeReady(&object)
			}
		}
	}
	return nodes, objects.Items, nil
}

func (n *Node) read(ctx context.Context, machine *cluster.Node, units []string) error {
	if len(units) > 0 {
		text, err := machine.Exec(ctx, append([]string{"systemctl", "show", "--property=" + unitProperties}, units...)...)
		if err != nil {
			return err
		}
		n.Units = parseUnits(text)
	}
	found, err := machine.Exec(ctx, "find", nodeconfig.CertsDir, "-name", nodeconfig.HostsFile)
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(slices.Values(strings.Fields(found))) {
		content, err := machine.ReadFile(ctx, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		n.Mirrors = append(n.Mirrors, nodeconfig.ParseHosts(path.Base(path.Dir(file)), content))
	}
	return n.readState(ctx, machine)
}

// readState adds what the script says. A loop that is dead is a problem.
func (n *Node) readState(ctx context.Context, machine *cluster.Node) error {
	text, err := machine.Exec(ctx, nodeconfig.StateCommand()...)
	if err != nil {
		return err
	}
	state, err := nodeconfig.ParseState(text)
	if err != nil {
		return err
	}
	n.Caches = state.Upstreams
	if dead := state.Dead(); dead != "" {
		n.Problem = nodeconfig.UnitName + ": " + dead
	}
	return nil
}

const unitProperties = "Id,LoadState,ActiveState,SubState,Result,NRestarts"

// parseUnits parses the output of `systemctl show`: a block of KEY=VALUE lines for each unit.
func parseUnits(text string) []Unit {
	var units []Unit
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		fields := map[string]string{}
		for line := range strings.SplitSeq(block, "\n") {
			key, value, _ := strings.Cut(line, "=")
			fields[key] = strings.TrimSpace(value)
		}
		if fields["Id"] != "" {
			units = append(units, Unit{
				Name: fields["Id"], Load: fields["LoadState"], Active: fields["ActiveState"], Sub: fields["SubState"],
				Result: fields["Result"], Restarts: fields["NRestarts"],
			})
		}
	}
	return units
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
